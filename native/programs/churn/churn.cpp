#include "programs/churn/churn.h"

#include <algorithm>
#include <string>

#include "message/names.h"

namespace perflab::churn {

Churn::Churn(const Config& config, const measure::Clock& clock)
    : config_(config),
      clock_(clock),
      plugin_(middleware::Plugin::load(config.library)),
      pairs_(config.topics) {
  if (!plugin_.capabilities().across_processes) {
    throw Unsupported(std::string(plugin_.name()) +
                      ": does not connect processes, so no process would see the churn; "
                      "right would be another middleware");
  }
  host_.now_ns = [](void* context) { return static_cast<const Churn*>(context)->clock_.now(); };
  host_.context = this;
  if (config_.what == What::kEndpoints) participant_ = open();
}

middleware::Participant Churn::open() const { return plugin_.open(host_, config_.participant); }

Churn::Pair Churn::create_pair(middleware::Participant& participant, std::size_t topic) const {
  const middleware::EndpointSettings settings{
      .topic = message::dds_topic_name("/perflab_churn_" + std::to_string(topic + 1)),
      .type = message::dds_type_name(config_.type->type->name),
      .fixed_size = config_.type->codec.fixed_size()};
  return {participant.create_writer(settings), participant.create_reader(settings)};
}

void Churn::run_cycle(Nanoseconds now) {
  const std::int64_t latest = std::max<std::int64_t>(cycle_, (now - start_ns_) / config_.period_ns);
  counts_.skipped += static_cast<std::uint64_t>(latest - cycle_);
  cycle_ = latest + 1;
  if (config_.what == What::kParticipants) {
    clear();
    participant_ = open();
    for (std::size_t topic = 0; topic < pairs_.size(); ++topic)
      pairs_[topic] = create_pair(*participant_, topic);
  } else {
    const std::size_t topic = counts_.created % pairs_.size();
    if (pairs_[topic]) {
      pairs_[topic].reset();
      ++counts_.deleted;
    }
    pairs_[topic] = create_pair(*participant_, topic);
  }
  ++counts_.created;
}

void Churn::clear() noexcept {
  std::uint64_t pairs = 0;
  for (std::optional<Pair>& pair : pairs_) {
    if (pair) ++pairs;
    pair.reset();
  }
  const bool participants = config_.what == What::kParticipants;
  counts_.deleted += participants ? (participant_ ? 1 : 0) : pairs;
  participant_.reset();
}

}  // namespace perflab::churn
