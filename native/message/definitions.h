// The interface files that perflab brings, those of ros/perflab_msgs and of catalog/messages: their text is a
// part of every program that links perflab_message_definitions, which reads no file for it.
//
// Example:
//   Library library(brought());
#pragma once

#include <span>

#include "message/library.h"

namespace perflab::message {

// Each file once, by its bytes; of static storage duration.
[[nodiscard]] std::span<const InterfaceText> brought() noexcept;

}  // namespace perflab::message
