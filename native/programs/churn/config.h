// The configuration of perflab-churn: the middleware, what to create and destroy, and how often.
//
//   {"middleware": {"name", "library", "domain", "network", "options"},   as in docs/formats.md, section 2
//    "what": "endpoints" | "participants", "rate_hz": 10.0, "topics": 1, "type": "stamped10b",
//    "participants_expected": 2, "records": "/.../churn.jsonl" | null}
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "measure/clock.h"
#include "message/format.h"
#include "middleware/host/plugin.h"

namespace perflab::churn {

enum class What { kEndpoints, kParticipants };

struct Config {
  std::string library;
  middleware::ParticipantSettings participant;
  What what = What::kEndpoints;
  Nanoseconds period_ns = 0;
  std::size_t topics = 1;
  std::shared_ptr<message::Formats> messages = std::make_shared<message::Formats>();
  const message::Format* type = nullptr;  // owned by `formats`
  std::string records;  // empty: progress goes to the control channel
};

// Throws BadInput with one line that names the file.
Config read_config(const std::string& file);

}  // namespace perflab::churn
