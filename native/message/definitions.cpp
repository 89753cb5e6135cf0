#include "message/definitions.h"

namespace perflab::message {
namespace {

using namespace std::string_view_literals;

// The array size follows from the files found by embed_definitions.cmake.
constexpr InterfaceText kBrought[] = {
#include "definitions.inc"
};

}  // namespace

std::span<const InterfaceText> brought() noexcept { return kBrought; }

}  // namespace perflab::message
