// What peer.cpp gives to the other process beside the plug-in: nothing here.
#include "fixture.h"

namespace perflab::conformance {

Subject& subject() {
  static Subject none;
  return none;
}

}  // namespace perflab::conformance
