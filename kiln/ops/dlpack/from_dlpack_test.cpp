#include "kiln/ops/dlpack/dlpack_test_support.hpp"

#include <cstring>
#include <limits>

#include "kiln/fusion/inspect.hpp"
#include "kiln/ops/compare/compare.hpp"
#include "kiln/ops/create/create.hpp"
#include "kiln/ops/elementwise/elementwise.hpp"
#include "kiln/ops/matmul/matmul.hpp"
#include "kiln/ops/reduce/reduce.hpp"
#include "kiln/ops/softmax/softmax.hpp"
#include "kiln/runtime/cpu/cpu_runtime.hpp"
#include "kiln/support/error.hpp"

namespace kiln {
namespace {

using test::Array;
using test::counted_to;
using test::lazy;
using test::message_of;
using test::refusal;
using test::values;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(FromDlpack, AnArrayOfAnotherLibraryIsATensorWithoutACopy) {
  struct Image {  // what the other library calls an array
    std::vector<float> pixels = {1, 2, 3, 4, 5, 6};
    std::int64_t shape[2] = {2, 3};
    DLManagedTensor managed{};
  };
  auto* image = new Image;
  image->managed.dl_tensor = {.data = image->pixels.data(),
                              .device = {kDLCPU, 0},
                              .ndim = 2,
                              .dtype = {kDLFloat, 32, 1},
                              .shape = image->shape};  // no strides: dense
  image->managed.manager_ctx = image;
  image->managed.deleter = [](DLManagedTensor* self) {
    delete static_cast<Image*>(self->manager_ctx);
  };
  const AnyTensor x = from_dlpack(&image->managed);  // `image` ends with the last tensor over it

  const AnyTensor total = sum(x, 1);
  EXPECT_THAT(values(total), ElementsAre(6, 15));
}

TEST(FromDlpack, ElementsAreReadWhereTheyLie) {
  Array<float> array({1, 2, 3}, {3});
  const AnyTensor x = from_dlpack(&array.managed);
  const RawTensor raw = x.value().raw();
  EXPECT_EQ(cpu::host(*raw.runtime)->data_of("test", raw.buffer),
            reinterpret_cast<std::byte*>(array.elements.data()));
  EXPECT_EQ(raw.buffer->size(), 12U);
}

TEST(FromDlpack, TakesEveryElementType) {
  Array<std::int32_t> i32({-1, 2}, {2});
  Array<std::uint32_t> u32({1, 4'000'000'000U}, {2});
  Array<float16> f16({float16(0.5F), float16(-2)}, {2});
  EXPECT_THAT(from_dlpack(&i32.managed).to_vector<std::int32_t>(), ElementsAre(-1, 2));
  EXPECT_THAT(from_dlpack(&u32.managed).to_vector<std::uint32_t>(), ElementsAre(1, 4'000'000'000U));
  const AnyTensor half = from_dlpack(&f16.managed);
  EXPECT_EQ(half.dtype(), DType::f16);
  EXPECT_THAT(values(half), ElementsAre(0.5F, -2));
}

TEST(FromDlpack, StridesAndByteOffsetsCount) {
  Array<float> columns(counted_to(6), {3, 2}, {1, 3});
  EXPECT_THAT(values(from_dlpack(&columns.managed)), ElementsAre(0, 3, 1, 4, 2, 5));
  Array<float> second(counted_to(8), {2, 2}, {4, 2});
  second.tensor().byte_offset = 4;
  const AnyTensor x = from_dlpack(&second.managed);
  EXPECT_THAT(values(x), ElementsAre(1, 3, 5, 7));
  EXPECT_THAT(values(matmul(x, x)), ElementsAre(16, 24, 40, 64));
  EXPECT_EQ(x.value().raw().buffer->size(), 28U) << "up to the furthest element";
  Array<float> repeated({7, 8}, {3, 2}, {0, 1});
  EXPECT_THAT(values(from_dlpack(&repeated.managed)), ElementsAre(7, 8, 7, 8, 7, 8));
}

TEST(FromDlpack, WindowsThatOverlapAreOrdinaryTensors) {
  Array<float> windows(counted_to(6), {4, 3}, {1, 1});
  const AnyTensor x = from_dlpack(&windows.managed);
  const AnyTensor same = tensor<float>({0, 1, 2, 1, 2, 3, 2, 3, 4, 3, 4, 5}, {4, 3}, cpu::device());
  EXPECT_EQ(values(x + 1), values(same + 1));
  EXPECT_EQ(values(sum(x, 0)), values(sum(same, 0)));
  EXPECT_EQ(values(softmax(x, -1)), values(softmax(same, -1)));
  EXPECT_EQ(values(matmul(x, transpose(x))), values(matmul(same, transpose(same))));
}

TEST(FromDlpack, StridesOfAxesOfSizeOneMayBeAnything) {
  Array<float> row(counted_to(3), {1, 3, 1}, {-5, 1, std::numeric_limits<std::int64_t>::max()});
  const AnyTensor x = from_dlpack(&row.managed);
  EXPECT_EQ(x.value().layout(), Layout::dense({1, 3, 1}));
  EXPECT_THAT(values(x), ElementsAre(0, 1, 2));
}

TEST(FromDlpack, RankZeroAndNoElements) {
  Array<float> scalar({3}, {});
  scalar.tensor().shape = nullptr;
  EXPECT_EQ(from_dlpack(&scalar.managed).item(), 3);
  Array<float> empty({}, {0, 3}, {-3, 1});
  empty.tensor().data = nullptr;
  {
    const AnyTensor x = from_dlpack(&empty.managed);
    EXPECT_EQ(x.shape(), (Shape{0, 3}));
    EXPECT_THAT(values(x + 1), IsEmpty());
    EXPECT_THAT(values(sum(x, 0)), ElementsAre(0, 0, 0));
    EXPECT_THAT(values(matmul(transpose(x), x)), Each(0));
  }
  EXPECT_EQ(empty.given_back, 1);
}

TEST(FromDlpack, AddressesNeedTheAlignmentOfAnElementOnly) {
  Array<float> array(counted_to(1000), {999});
  array.tensor().byte_offset = 4;
  std::vector<float> expected(array.elements.begin() + 1, array.elements.end());
  const AnyTensor x = from_dlpack(&array.managed);
  for (float& v : expected) v = v * 2 + 1;
  EXPECT_EQ(values(x * 2 + 1), expected);
}

// The address sanitizer sees a read behind the array's last element, which kiln's own buffers have
// room for.
TEST(FromDlpack, OperationsReadNothingBehindTheElements) {
  const auto expect_equal = [](const AnyTensor& x, const AnyTensor& same) {
    EXPECT_EQ(values(x * 2 + 1), values(same * 2 + 1));
    EXPECT_EQ(values(sum(x, 0)), values(sum(same, 0)));
    EXPECT_EQ(values(sum(x, 1)), values(sum(same, 1)));
    EXPECT_EQ(values(softmax(x, -1)), values(softmax(same, -1)));
    EXPECT_EQ(values(matmul(x, transpose(x))), values(matmul(same, transpose(same))));
  };
  Array<float> f32(test::wave(std::int64_t{7} * 37), {7, 37});
  expect_equal(from_dlpack(&f32.managed), tensor(f32.elements, {7, 37}, cpu::device()));
  std::vector<float16> half;
  for (const float v : f32.elements) half.emplace_back(v);
  Array<float16> f16(half, {7, 37});
  expect_equal(from_dlpack(&f16.managed), tensor(half, {7, 37}, cpu::device()));
}

TEST(FromDlpack, TheDeleterRunsOnceWithTheLastTensor) {
  Array<float> array(counted_to(4), {2, 2});
  AnyTensor x = from_dlpack(&array.managed);
  AnyTensor copy = x;
  AnyTensor view = transpose(x);
  x = {};
  copy = {};
  EXPECT_THAT(values(view), ElementsAre(0, 2, 1, 3));
  EXPECT_EQ(array.given_back, 0);
  view = {};
  EXPECT_EQ(array.given_back, 1);
}

TEST(FromDlpack, QueuedOperationsKeepTheElements) {
  Array<float> array(counted_to(4), {4});
  const AnyTensor y = from_dlpack(&array.managed, lazy()) + 1;
  EXPECT_EQ(array.given_back, 0);
  EXPECT_THAT(values(y), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(array.given_back, 1);
}

TEST(FromDlpack, ADeleterMayReadTensorsWheneverItIsCalled) {
  // The last to let go of the array is the queue, while it runs.
  struct Reads : Array<float> {
    using Array::Array;
    AnyTensor tensor;
    std::vector<float> got;
  };
  Reads array(counted_to(3), {3});
  array.managed.manager_ctx = &array;
  array.managed.deleter = [](DLManagedTensor* self) {
    auto& mine = *static_cast<Reads*>(self->manager_ctx);
    mine.got = (mine.tensor * 3).to_vector();
    mine.given_back.fetch_add(1);
  };
  array.tensor = full({2}, 2, lazy()) + 1;
  AnyTensor y = from_dlpack(&array.managed, lazy()) * 2;
  const AnyTensor z = y + 1;  // so that the array ends before the queue is done
  EXPECT_THAT(y.to_vector(), ElementsAre(0, 2, 4));
  EXPECT_EQ(array.given_back, 1);
  EXPECT_THAT(array.got, ElementsAre(9, 9));
}

TEST(FromDlpack, WhatADeleterThrowsEndsNothing) {
  Array<float> array(counted_to(3), {3});
  array.managed.deleter = [](DLManagedTensor* self) {
    static_cast<Array<float>*>(self->manager_ctx)->given_back.fetch_add(1);
    throw std::runtime_error("on purpose");
  };
  const AnyTensor y = from_dlpack(&array.managed, lazy()) * 2;
  EXPECT_THAT(y.to_vector(), ElementsAre(0, 2, 4));
  EXPECT_EQ(array.given_back, 1);
}

TEST(FromDlpack, AnArrayWithoutADeleterIsJustRead) {
  Array<float> array({1, 2}, {2});
  array.managed.deleter = nullptr;
  EXPECT_THAT(values(from_dlpack(&array.managed)), ElementsAre(1, 2));
}

TEST(FromDlpack, NothingIsWrittenInPlaceOfTheElements) {
  const auto in_place_after = [](AnyTensor x) {
    lazy().flush();
    const AnyTensor y = x + 1;
    x = {};  // nobody else has its elements now
    const std::uint64_t in_place = inspect(lazy()).in_place;
    EXPECT_THAT(values(y), Each(8));
    return in_place;
  };
  EXPECT_EQ(in_place_after(full({1000}, 7, lazy())), 1U) << "what kiln does with its own memory";
  Array<float> array(std::vector<float>(1000, 7), {1000});
  EXPECT_EQ(in_place_after(from_dlpack(&array.managed, lazy())), 0U);
  EXPECT_THAT(array.elements, Each(7));
  EXPECT_EQ(array.given_back, 1);
}

TEST(FromDlpack, GradientsAreOnesOwnBusiness) {
  Array<float> array({1, 2, 3}, {3});
  const AnyTensor x = from_dlpack(&array.managed, cpu::device().autodiff()).require_grad();
  EXPECT_THAT(values(sum(x * x).backward().of(x)), ElementsAre(2, 4, 6));
}

TEST(FromDlpack, RefusesOtherElementTypes) {
  Array<double> f64({1}, {1});
  EXPECT_THAT(refusal<DTypeError>(f64),
              AllOf(HasSubstr("got float64"), HasSubstr("float32, float16, int32 and uint32")));
  Array<float> array({1}, {1});
  const auto other = [&](std::uint8_t code, std::uint8_t bits, std::uint16_t lanes = 1) {
    array.tensor().dtype = {code, bits, lanes};
    return refusal<DTypeError>(array);
  };
  EXPECT_THAT(other(kDLInt, 64), HasSubstr("got int64"));
  EXPECT_THAT(other(kDLUInt, 8), HasSubstr("got uint8"));
  EXPECT_THAT(other(kDLBfloat, 16), HasSubstr("got bfloat16"));
  EXPECT_THAT(other(kDLComplex, 64), HasSubstr("got complex64"));
  EXPECT_THAT(other(6, 8), HasSubstr("got bool"));
  EXPECT_THAT(other(kDLFloat, 32, 4), HasSubstr("got float32 of 4 lanes"));
  EXPECT_THAT(other(200, 8), HasSubstr("got type code 200 of 8 bits"));
}

TEST(FromDlpack, TakesMemoryOfTheHostOnly) {
  Array<float> array({1}, {1});
  const auto of = [&](int type) {
    std::memcpy(&array.tensor().device.device_type, &type, sizeof(type));
    return refusal<DeviceError>(array);
  };
  EXPECT_THAT(of(kDLCUDA), HasSubstr("got 2 (cuda)"));
  EXPECT_THAT(of(kDLCUDAManaged), HasSubstr("got 13 (managed memory of cuda)"));
  EXPECT_THAT(of(77), HasSubstr("got 77 (unknown)"));
  for (const DLDeviceType pinned : {kDLCUDAHost, kDLROCMHost}) {
    array.tensor().device.device_type = pinned;
    EXPECT_EQ(from_dlpack(&array.managed).item(), 1);
  }
}

TEST(FromDlpack, RefusesShapesAndStridesItCannotHave) {
  Array<float> high({1}, std::vector<std::int64_t>(9, 1));
  EXPECT_THAT(refusal<ShapeError>(high), HasSubstr("rank must be 0 to 8, got 9"));
  high.tensor().ndim = -1;
  EXPECT_THAT(refusal<ShapeError>(high), HasSubstr("got -1"));
  Array<float> negative({1}, {2, -3});
  EXPECT_THAT(refusal<ShapeError>(negative), HasSubstr("sizes must not be negative, got [2, -3]"));
  Array<float> shapeless({1}, {1});
  shapeless.tensor().shape = nullptr;
  EXPECT_THAT(refusal<ShapeError>(shapeless), HasSubstr("no shape"));
  Array<float> reversed(counted_to(4), {2, 2}, {2, -1});
  EXPECT_THAT(refusal<ShapeError>(reversed),
              AllOf(HasSubstr("strides must not be negative, got [2, -1]"), HasSubstr("[2, 2]")));
  Array<float> far({1}, {2, 2, 2}, {std::int64_t{1} << 62, std::int64_t{1} << 62, 1});
  EXPECT_THAT(refusal<ShapeError>(far), HasSubstr("past 2^63 bytes"));
  Array<float> many({1}, {std::int64_t{1} << 20, std::int64_t{1} << 20}, {0, 0});
  EXPECT_THAT(refusal<ShapeError>(many), HasSubstr("from_dlpack: f32 [1048576, 1048576]"));
}

TEST(FromDlpack, RefusesAddressesItCannotRead) {
  EXPECT_THAT(message_of<UnsupportedError>([] { (void)from_dlpack(nullptr); }), HasSubstr("null"));
  Array<float> array({1, 2}, {1});
  array.tensor().byte_offset = 2;
  EXPECT_THAT(refusal<UnsupportedError>(array),
              AllOf(HasSubstr("f32 [1]"), HasSubstr("no multiple of their 4 bytes")));
  array.tensor().data = nullptr;
  EXPECT_THAT(refusal<UnsupportedError>(array), HasSubstr("has no elements (null)"));
}

}  // namespace
}  // namespace kiln
