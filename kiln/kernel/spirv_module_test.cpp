#include "kiln/kernel/spirv_module.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <vector>

#include "kiln/support/error.hpp"

namespace kiln {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Words = std::vector<std::uint32_t>;
using Buffer = SpirvModule::Buffer;

const Words header{0x07230203, 0x00010000, 0, 100, 0};

void add(Words& words, std::uint32_t op, std::initializer_list<std::uint32_t> operands) {
  words.push_back(static_cast<std::uint32_t>(operands.size() + 1) << 16 | op);
  words.insert(words.end(), operands);
}

enum : std::uint32_t { decorate = 71, decorate_member = 72, make_struct = 30, pointer = 32 };
enum : std::uint32_t { variable = 59, execution_mode = 16 };
enum : std::uint32_t { buffer_block = 3, non_writable = 24, in_binding = 33, in_set = 34 };
enum : std::uint32_t { uniform = 2, push_constant = 9, storage_buffer = 12 };

/// A variable `id` of a struct of one array, at a place.
void add_buffer(Words& words, std::uint32_t id, std::uint32_t set, std::uint32_t binding,
                std::uint32_t storage) {
  const std::uint32_t type = id + 1;
  add(words, decorate, {id, in_set, set});
  add(words, decorate, {id, in_binding, binding});
  add(words, make_struct, {type, 99});
  add(words, pointer, {id + 2, storage, type});
  add(words, variable, {id + 2, id, storage});
}

std::string refusal(const Words& words) {
  try {
    (void)read_spirv(words);
  } catch (const KernelError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(SpirvModule, TellsItsStorageBuffersByPlace) {
  Words words = header;
  add(words, decorate, {11, buffer_block});
  add(words, decorate, {21, buffer_block});
  add(words, decorate_member, {21, 0, non_writable});
  add_buffer(words, 10, 0, 3, uniform);
  add_buffer(words, 20, 0, 1, uniform);
  add_buffer(words, 30, 1, 0, uniform);  // no BufferBlock: a uniform block
  const SpirvModule module = read_spirv(words);
  EXPECT_THAT(module.buffers, ElementsAre(Buffer{0, 1, true}, Buffer{0, 3, false}));
  EXPECT_FALSE(module.push_constants);
}

TEST(SpirvModule, OfANewerFormHasNoReadonlyBuffers) {
  Words words = header;
  add(words, decorate_member, {11, 0, non_writable});
  add_buffer(words, 10, 0, 0, storage_buffer);
  EXPECT_THAT(read_spirv(words).buffers, ElementsAre(Buffer{0, 0, false}));
}

TEST(SpirvModule, TellsThatItHasPushConstants) {
  Words words = header;
  add_buffer(words, 10, 0, 0, push_constant);
  EXPECT_TRUE(read_spirv(words).push_constants);
  EXPECT_THAT(read_spirv(words).buffers, IsEmpty());
}

TEST(SpirvModule, RefusesWordsThatAreNone) {
  EXPECT_EQ(refusal({}), "not a SPIR-V module: it is empty");
  EXPECT_EQ(refusal({0x03022307, 1, 2, 3, 4}),
            "not a SPIR-V module: it begins with 0x03022307, not 0x07230203");
  EXPECT_EQ(refusal({header[0], header[1]}), "the SPIR-V module ends in its header");
  Words words = header;
  words.push_back(variable);  // a length of no words
  EXPECT_EQ(refusal(words), "not a SPIR-V module: word 5 is not an instruction");
}

TEST(SpirvModule, RefusesOneThatIsCutOff) {
  Words words = header;
  add_buffer(words, 10, 0, 0, uniform);
  words.pop_back();
  EXPECT_EQ(refusal(words),
            "the SPIR-V module ends within an instruction: 4 words at word 20, but 3 are left");
}

TEST(SpirvModule, RefusesAnInstructionThatLacksOperands) {
  Words words = header;
  add(words, execution_mode, {4, 17, 64});  // a local size of one number: wgpu-native would abort
  EXPECT_EQ(refusal(words), "not a SPIR-V module: the instruction at word 5 lacks operands");
}

/// With `shared float values[count]`, count a specialisation constant of id 3 that is 100 by
/// itself, and a `shared` struct of a vec3 and a float.
Words with_workgroup_memory() {
  enum : std::uint32_t { type_int = 21, type_float = 22, vector = 23, array = 28, spec = 50 };
  constexpr std::uint32_t workgroup = 4;
  Words words = header;
  add(words, decorate, {5, 1, 3});  // SpecId 3
  add(words, type_int, {1, 32, 0});
  add(words, type_float, {2, 32});
  add(words, spec, {1, 5, 100});
  add(words, array, {6, 2, 5});
  add(words, pointer, {7, workgroup, 6});
  add(words, variable, {7, 8, workgroup});
  add(words, vector, {9, 2, 3});
  add(words, make_struct, {10, 9, 2});
  add(words, pointer, {11, workgroup, 10});
  add(words, variable, {11, 12, workgroup});
  return words;
}

TEST(SpirvModule, TellsItsWorkgroupMemory) {
  using Given = std::vector<std::pair<std::string, double>>;
  const Words words = with_workgroup_memory();
  EXPECT_EQ(read_spirv(words).workgroup_bytes, 400U + 16U);
  EXPECT_EQ(read_spirv(words, Given{{"3", 1000}}).workgroup_bytes, 4000U + 16U);
  EXPECT_THROW((void)read_spirv(words, Given{{"3", 1.5}}), KernelError);
  EXPECT_THROW((void)read_spirv(words, Given{{"3", -1}}), KernelError);
  EXPECT_THROW((void)read_spirv(words, Given{{"4", 1}}), KernelError) << "there is no such id";
}

TEST(SpirvModule, TellsABoundOfHowDeepItNests) {
  Words words = header;
  for (std::uint32_t i = 0; i < 500; ++i) add(words, 247, {i, 0});  // OpSelectionMerge
  EXPECT_GE(read_spirv(words).depth, 500U);
}

}  // namespace
}  // namespace kiln
