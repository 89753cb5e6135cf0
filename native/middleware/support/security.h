// The credentials of a participant for DDS Security.
#pragma once

#include <string>

#include "middleware/support/options.h"

namespace perflab::middleware::support {

// Files in a folder, with the names used by perflab/middleware/security.py.
struct Credentials {
  std::string folder;  // empty: no security

  explicit operator bool() const noexcept { return !folder.empty(); }
  [[nodiscard]] std::string file(const char* name) const { return folder + "/" + name; }
};
constexpr const char* kIdentityCa = "identity_ca.pem";
constexpr const char* kIdentityCertificate = "identity_cert.pem";
constexpr const char* kIdentityKey = "identity_key.pem";
constexpr const char* kPermissionsCa = "permissions_ca.pem";
constexpr const char* kGovernance = "governance.p7s";
constexpr const char* kPermissions = "permissions.p7s";

// The option `security`: off, or the absolute path of a folder that has all files. Throws BadInput.
Credentials read_security(const Options& options);

}  // namespace perflab::middleware::support
