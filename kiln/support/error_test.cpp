#include "kiln/support/error.hpp"

#include <gtest/gtest.h>

#include <string>

namespace kiln {
namespace {

/// Throws E and catches it as Error.
template <class E>
std::string caught_as_error() {
  try {
    throw E("relu: what is required");
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(Error, EveryKindIsCaughtAsErrorAndKeepsItsText) {
  EXPECT_EQ(caught_as_error<Error>(), "relu: what is required");
  EXPECT_EQ(caught_as_error<ShapeError>(), "relu: what is required");
  EXPECT_EQ(caught_as_error<DTypeError>(), "relu: what is required");
  EXPECT_EQ(caught_as_error<DeviceError>(), "relu: what is required");
  EXPECT_EQ(caught_as_error<KernelError>(), "relu: what is required");
  EXPECT_EQ(caught_as_error<UnsupportedError>(), "relu: what is required");
  EXPECT_EQ(caught_as_error<OutOfMemoryError>(), "relu: what is required");
}

TEST(Error, IsAStandardRuntimeError) { EXPECT_THROW(throw ShapeError("x"), std::runtime_error); }

}  // namespace
}  // namespace kiln
