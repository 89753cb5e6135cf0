// The errors of all parts of perflab: one line that says what is wrong, where, and what would be right. The
// kind determines the exit code of the program (docs/ARCHITECTURE.md).
//
// Example:
//   if (!file.open()) throw Failed(path + ": cannot be written: " + reason_of(errno));
//   catch (const std::exception& error) { return exit_code(kind_of(error)); }
#pragma once

#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>

namespace perflab {

class Error : public std::runtime_error {
 public:
  enum class Kind {
    kBadInput,     // the request is malformed or unknown; nothing was done
    kUnsupported,  // this machine, runtime or middleware does not support it
    kFailed        // it was attempted and failed
  };

  Error(Kind kind, const std::string& text) : std::runtime_error(text), kind_(kind) {}
  [[nodiscard]] Kind kind() const noexcept { return kind_; }

 private:
  Kind kind_;
};

class BadInput : public Error {
 public:
  explicit BadInput(const std::string& text) : Error(Kind::kBadInput, text) {}
};

class Unsupported : public Error {
 public:
  explicit Unsupported(const std::string& text) : Error(Kind::kUnsupported, text) {}
};

class Failed : public Error {
 public:
  explicit Failed(const std::string& text) : Error(Kind::kFailed, text) {}
};

// Exceptions of libraries and of the standard library count as failures.
[[nodiscard]] inline Error::Kind kind_of(const std::exception& error) noexcept {
  const auto* const known = dynamic_cast<const Error*>(&error);
  return known == nullptr ? Error::Kind::kFailed : known->kind();
}

[[nodiscard]] constexpr int exit_code(Error::Kind kind) noexcept {
  if (kind == Error::Kind::kBadInput) return 2;
  return kind == Error::Kind::kUnsupported ? 3 : 1;
}

// The name of the kind in messages on control channels.
[[nodiscard]] constexpr const char* to_text(Error::Kind kind) noexcept {
  if (kind == Error::Kind::kBadInput) return "bad_input";
  return kind == Error::Kind::kUnsupported ? "unsupported" : "failed";
}

// strerror(3) for an error number.
[[nodiscard]] inline std::string reason_of(int number) { return std::strerror(number); }

}  // namespace perflab
