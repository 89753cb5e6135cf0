#include "middleware/support/security.h"

#include <unistd.h>

namespace perflab::middleware::support {

Credentials read_security(const Options& options) {
  const std::string given = options.text("security").value_or("off");
  if (given == "off") return {};
  if (!given.starts_with('/'))
    options.refuse("security", "off, or the absolute path of a folder with credentials");
  const Credentials credentials{given};
  for (const char* const name :
       {kIdentityCa, kIdentityCertificate, kIdentityKey, kPermissionsCa, kGovernance, kPermissions}) {
    if (access(credentials.file(name).c_str(), R_OK) != 0) {
      options.refuse("security", "a folder with credentials in which " + std::string(name) + " can be read");
    }
  }
  return credentials;
}

}  // namespace perflab::middleware::support
