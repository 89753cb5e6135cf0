#include "message/definitions.h"

namespace perflab::message {
namespace {

using namespace std::string_view_literals;

// Without a number of elements: as many as embed_definitions.cmake found.
constexpr InterfaceText kBrought[] = {
#include "definitions.inc"
};

}  // namespace

std::span<const InterfaceText> brought() noexcept { return kBrought; }

}  // namespace perflab::message
