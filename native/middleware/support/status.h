// Errors inside a plug-in are exceptions; at the C boundary they become a status and one line of text.
//
// Example:
//   perflab_status create(..., perflab_error* error) {
//     return guarded(error, [&] {
//       *writer = new Writer(...);  // may throw an Error
//       return PERFLAB_OK;
//     });
//   }
#pragma once

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>

#include "base/error.h"
#include "middleware/types.h"

namespace perflab::middleware::support {

// One line, truncated if necessary, NUL-terminated. Does not allocate.
inline void set_error(perflab_error* error, std::string_view text) noexcept {
  if (error == nullptr) return;
  const std::size_t length = std::min(text.size(), sizeof error->text - 1);
  std::replace_copy(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(length), error->text, '\n', ' ');
  error->text[length] = '\0';
}

// Inline, because it wraps every write and take.
template <typename Function>
[[gnu::always_inline]] inline perflab_status guarded(perflab_error* error, Function&& function) noexcept {
  try {
    return function();
  } catch (const std::exception& failure) {
    set_error(error, failure.what());
    return status_of(perflab::kind_of(failure));
  }
}

}  // namespace perflab::middleware::support
