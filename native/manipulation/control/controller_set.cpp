#include "manipulation/control/controller_set.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"

namespace perflab::manipulation {
namespace {

using Places = std::vector<std::size_t>;

bool has(const Places& places, std::size_t place) { return std::find(places.begin(), places.end(), place) != places.end(); }

}  // namespace

ControllerSet::ControllerSet(std::vector<ControllerDescription> controllers) : controllers_(std::move(controllers)) {
  if (controllers_.size() > kMost) throw BadInput("there are more than " + std::to_string(kMost) + " controllers");
  const Running all = controllers_.size() == kMost ? ~Running{0} : (Running{1} << controllers_.size()) - 1;
  asked_.store(all);
  running_.store(all);
}

Switch ControllerSet::plan(const std::vector<std::string>& activate, const std::vector<std::string>& deactivate,
                           Strictness strictness) const {
  Switch change;
  // The controllers of the list that exist; false if an unknown one ends the request.
  const auto find = [&](const std::vector<std::string>& names, const char* action, Places& places) {
    std::string unknown;
    for (const std::string& name : names) {
      const auto found = std::find_if(controllers_.begin(), controllers_.end(),
                                      [&](const ControllerDescription& each) { return each.name == name; });
      if (found != controllers_.end()) {
        places.push_back(static_cast<std::size_t>(found - controllers_.begin()));
        continue;
      }
      unknown = std::string("Could not ") + action + " controller with name '" + name +
                "' because no controller with this name exists";
      if (strictness == Strictness::kStrict) break;
    }
    if (unknown.empty() || (strictness == Strictness::kBestEffort && !places.empty())) return true;
    change.message = unknown;
    return false;
  };
  Places on, off;
  if (!find(deactivate, "deactivate", off) || !find(activate, "activate", on)) return change;

  // Those that are not yet in the requested state.
  const auto keep = [&](const Places& places, const auto& refusal, Places& kept) {
    for (const std::size_t place : places) {
      const std::optional<std::string> refused = refusal(place);
      if (!refused) {
        kept.push_back(place);
      } else if (strictness == Strictness::kStrict) {
        change.message = *refused;
        return false;
      }
    }
    return true;
  };
  const auto named = [this](std::size_t place) { return "Controller with name '" + controllers_[place].name + "' "; };
  const auto already = [&](std::size_t place) -> std::optional<std::string> {
    if (!active(place) || has(off, place)) return std::nullopt;
    return named(place) + "is already active.";
  };
  const auto not_active = [&](std::size_t place) -> std::optional<std::string> {
    if (active(place)) return std::nullopt;
    return named(place) + "can not be deactivated since it is not active.";
  };
  Switch wanted;
  if (!keep(on, already, wanted.activate) || !keep(off, not_active, wanted.deactivate)) return change;
  wanted.ok = true;
  wanted.message = wanted.activate.empty() && wanted.deactivate.empty()
                       ? "After checking the controllers, no controllers need to be activated or deactivated."
                       : "Successfully switched controllers!";
  return wanted;
}

void ControllerSet::ask(const Switch& change) noexcept {
  Running running = asked_.load();
  for (const std::size_t each : change.deactivate) running &= ~(Running{1} << each);
  for (const std::size_t each : change.activate) running |= Running{1} << each;  // both: it restarts
  asked_.store(running, std::memory_order_release);
}

}  // namespace perflab::manipulation
