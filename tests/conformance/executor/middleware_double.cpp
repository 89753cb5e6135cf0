// The middleware `direct` with what no middleware does when it is asked to. It knows no time stamps of the
// source. On "rt/exhausted" there is no loan. On "rt/late" the last message comes again, ten times, each time
// right after take() found nothing and before it says so. A writer that goes while one of its loans has not
// been ended ends the process.
#include <cstdlib>
#include <cstring>
#include <vector>

#include "middleware/direct/bus.h"
#include "middleware/direct/endpoint.h"
#include "middleware/support/options.h"
#include "middleware/support/plugin_table.h"
#include "middleware/support/status.h"
#include "middleware/support/waitset.h"

namespace direct = perflab::middleware::direct;
using perflab::middleware::support::LocalSettings;
using perflab::middleware::support::plugin_table;
using perflab::middleware::support::set_error;

struct perflab_participant final : direct::Participant {
  using Participant::Participant;
};

struct perflab_waitset final : perflab::middleware::support::WaitSet<direct::Reader> {
  using WaitSet::WaitSet;
};

struct perflab_writer final : direct::Writer {
  using Writer::Writer;
  ~perflab_writer() {
    if (lent_ != 0) std::abort();
  }

  perflab_status loan(void** message, perflab_error* error) noexcept {
    if (topic() == "rt/exhausted") {
      set_error(error, "double: no loan on " + topic());
      return PERFLAB_FAILED;
    }
    const perflab_status status = Writer::loan(message, error);
    if (status == PERFLAB_OK) ++lent_;
    return status;
  }
  perflab_status write_loaned(void* message, perflab_error* error) noexcept {
    --lent_;
    return Writer::write_loaned(message, error);
  }
  void discard_loan(void* message) noexcept {
    --lent_;
    Writer::discard_loan(message);
  }

 private:
  int lent_ = 0;
};

struct perflab_reader final : direct::Reader {
  using Reader::Reader;

  perflab_status take(perflab_sample* sample, perflab_error* error) {
    const perflab_status status = Reader::take(sample, error);
    if (status == PERFLAB_OK) {
      sample->source_timestamp_ns = PERFLAB_TIME_UNKNOWN;
      if (late_ > 0) last_.assign(sample->data, sample->data + sample->size);
    } else if (late_ > 0 && !last_.empty()) {
      --late_;
      come_again();
    }
    return status;
  }

 private:
  void come_again() {
    direct::Packet* const packet = pool_.get(last_.size());
    packet->references = 1;
    packet->size = last_.size();
    std::memcpy(packet->bytes(), last_.data(), last_.size());
    push(packet);
    // At once, also where this is within on_data(): Reader::call() would wait until that has returned.
    if (wants_call()) listener_.on_data(listener_.context);
  }

  int late_ = topic() == "rt/late" ? 10 : 0;
  std::vector<std::uint8_t> last_;
  direct::Pool& pool_ = participant().bus().lend_pool();  // which outlives the messages in it
};

namespace {

perflab_capabilities capabilities() {
  return {.across_processes = false,
          .data_ready_callbacks = true,
          .source_timestamps = false,
          .reception_timestamps = false,
          .reports_endpoints = false,
          .related_samples = true,
          .loans = true,
          .instances = false,
          .filters = false};
}

const perflab_policy* policies() {
  using namespace perflab::middleware::support;
  static constexpr perflab_policy kPolicies[] = {supported("history"),
                                                 supported("reliability"),
                                                 supported("durability"),
                                                 supported("lifespan"),
                                                 supported("liveliness"),
                                                 kLastPolicy};
  return kPolicies;
}

LocalSettings settings(const perflab_participant_settings& given) {
  return {given.domain, given.ignore_local_endpoints, 1'000'000'000};
}

constexpr perflab_middleware kDouble = [] {
  perflab_middleware table = plugin_table<settings>({.name = "double",
                                                     .summary = "for tests, within one process",
                                                     .version = [] { return "1"; },
                                                     .capabilities = capabilities,
                                                     .policies = policies});
  table.stamp_next = nullptr;  // as where there are no time stamps of the source
  return table;
}();

}  // namespace

PERFLAB_MIDDLEWARE_PLUGIN(kDouble)
