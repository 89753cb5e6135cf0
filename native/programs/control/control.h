// Another name of base/control.h.
#pragma once

#include "base/control.h"

namespace perflab::control {
using perflab::Control;
}  // namespace perflab::control
