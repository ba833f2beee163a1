#include "kiln/runtime/memory_pool.hpp"

#include <gtest/gtest.h>

namespace kiln {
namespace {

struct Memory {
  std::uint64_t size = 0;
  std::uint64_t id = 0;
};
using Pool = MemoryPool<Memory>;
using MemoryPtr = Pool::MemoryPtr;

constexpr std::uint64_t no_limit = UINT64_C(1) << 40;

MemoryPtr made(std::uint64_t size, std::uint64_t id) {
  auto memory = std::make_unique<Memory>();
  memory->size = size;
  memory->id = id;
  return memory;
}

TEST(SizeClass, HasFourStepsADoublingFrom256) {
  EXPECT_EQ(size_class(0, no_limit), 256U);
  EXPECT_EQ(size_class(256, no_limit), 256U);
  EXPECT_EQ(size_class(257, no_limit), 320U);
  EXPECT_EQ(size_class(1025, no_limit), 1280U);
  EXPECT_EQ(size_class(2000, no_limit), 2048U);
}

TEST(SizeClass, IsNeverSmallerNorAQuarterLargerAndAMultipleOf16) {
  for (std::uint64_t bytes = 256; bytes < (1U << 30); bytes += bytes / 7 + 1) {
    const std::uint64_t size = size_class(bytes, no_limit);
    EXPECT_GE(size, bytes);
    EXPECT_LE(size, bytes + bytes / 4);
    EXPECT_EQ(size % 16, 0U);
    EXPECT_EQ(size_class(size, no_limit), size);
  }
}

TEST(SizeClass, StopsAtTheLimit) { EXPECT_EQ(size_class(1000, 1008), 1008U); }

TEST(MemoryPool, GivesTheLastReturnedBufferOfASizeFirst) {
  Pool pool(1 << 20);
  EXPECT_EQ(pool.take(256), nullptr);
  EXPECT_EQ(pool.take(256), nullptr);
  pool.give_back(made(256, 1));
  pool.give_back(made(256, 2));
  EXPECT_EQ(pool.take(512), nullptr);
  EXPECT_EQ(pool.take(256)->id, 2U);
  EXPECT_EQ(pool.counts().reused, 1U);
  EXPECT_EQ(pool.counts().bytes_pooled, 256U);
  EXPECT_EQ(pool.counts().bytes_in_use, 512U + 256U);
}

TEST(MemoryPool, KeepsAsMuchAsWasEverInUseAndDropsTheOldestBeyondThat) {
  Pool pool(1024);
  for (std::uint64_t id = 0; id < 4; ++id) pool.take(1024);
  for (std::uint64_t id = 0; id < 4; ++id) pool.give_back(made(1024, id));
  EXPECT_TRUE(pool.garbage().empty()) << "4 KiB were in use at once";
  pool.take(2048);  // another size: what waits cannot serve it
  pool.give_back(made(2048, 4));
  const std::vector<MemoryPtr> dropped = pool.garbage();
  ASSERT_EQ(dropped.size(), 2U);
  EXPECT_EQ(dropped[0]->id, 0U);
  EXPECT_EQ(dropped[1]->id, 1U);
  EXPECT_TRUE(pool.garbage().empty());
}

TEST(MemoryPool, WhatWaitsMakesRoomForWhatIsMadeAnew) {
  Pool pool(1024);
  for (std::uint64_t id = 0; id < 8; ++id) pool.take(1024);
  for (std::uint64_t id = 0; id < 8; ++id) pool.give_back(made(1024, id));
  for (std::uint64_t id = 0; id < 4; ++id) {
    EXPECT_EQ(pool.take(2048), nullptr);  // none of those that wait is so large
    EXPECT_LE(pool.counts().bytes_in_use + pool.counts().bytes_pooled, 8 * 1024U + 1024U);
  }
  EXPECT_EQ(pool.counts().bytes_in_use, 8 * 1024U);
}

TEST(MemoryPool, TrimDropsAllThatWaits) {
  Pool pool(1 << 20);
  pool.take(256);
  pool.take(512);
  pool.give_back(made(256, 1));
  pool.trim();
  EXPECT_EQ(pool.garbage().size(), 1U);
  EXPECT_EQ(pool.counts().bytes_pooled, 0U);
  EXPECT_EQ(pool.counts().bytes_in_use, 512U);
}

TEST(MemoryPool, ForgetsWhatCouldNotBeMade) {
  Pool pool(0);
  pool.take(4096);
  pool.forget(4096);
  EXPECT_EQ(pool.counts().bytes_in_use, 0U);
  EXPECT_EQ(pool.counts().allocated, 0U);
}

}  // namespace
}  // namespace kiln
