// perflab's built-in interface files, those of ros/perflab_msgs and of catalog/messages: their text is
// embedded in every program that links perflab_message_definitions, so no file is read at run time.
//
// Example:
//   Library library(brought());
#pragma once

#include <span>

#include "message/library.h"

namespace perflab::message {

// Each file once, in byte order of names; static storage duration.
[[nodiscard]] std::span<const InterfaceText> brought() noexcept;

}  // namespace perflab::message
