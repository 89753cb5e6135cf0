#include "dds.h"

namespace perflab::runtime::conformance {

DdsSubject& dds() {
  static DdsSubject instance;
  return instance;
}

Subject& subject() { return dds(); }

}  // namespace perflab::runtime::conformance
