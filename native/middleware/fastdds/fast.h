// Common names for Fast DDS 2 and 3.
#pragma once

#if __has_include(<fastdds/config.hpp>)
#include <fastdds/config.hpp>
#else
#include <fastrtps/config.h>
#define FASTDDS_VERSION_MAJOR FASTRTPS_VERSION_MAJOR
#define FASTDDS_VERSION_MINOR FASTRTPS_VERSION_MINOR
#define FASTDDS_VERSION_MICRO FASTRTPS_VERSION_MICRO
#endif
#define PERFLAB_FASTDDS_3 (FASTDDS_VERSION_MAJOR >= 3)
// The transport interface of Fast DDS 3, which 2.14 (ROS 2 Jazzy) already has.
#define PERFLAB_FASTDDS_2_14 \
  (FASTDDS_VERSION_MAJOR > 2 || (FASTDDS_VERSION_MAJOR == 2 && FASTDDS_VERSION_MINOR >= 14))
// The participant property that prevents its endpoints from matching each other.
#define PERFLAB_FASTDDS_IGNORES_LOCAL \
  (FASTDDS_VERSION_MAJOR > 2 || (FASTDDS_VERSION_MAJOR == 2 && FASTDDS_VERSION_MINOR >= 11))

#include <fastdds/dds/core/LoanableSequence.hpp>
#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/domain/DomainParticipantListener.hpp>
#include <fastdds/dds/log/Log.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/DataWriterListener.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/DataReaderListener.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/ContentFilteredTopic.hpp>
#include <fastdds/dds/topic/IContentFilter.hpp>
#include <fastdds/dds/topic/IContentFilterFactory.hpp>
#include <fastdds/dds/topic/TopicDataType.hpp>
#include <fastdds/dds/topic/TypeSupport.hpp>
#if PERFLAB_FASTDDS_3
#include <fastdds/LibrarySettings.hpp>
#include <fastdds/dds/core/ReturnCode.hpp>
#include <fastdds/rtps/common/CacheChange.hpp>
#include <fastdds/rtps/common/LocatorsIterator.hpp>
#include <fastdds/rtps/common/WriteParams.hpp>
#include <fastdds/rtps/participant/ParticipantDiscoveryInfo.hpp>
#include <fastdds/rtps/transport/SenderResource.hpp>
#include <fastdds/rtps/transport/TransportInterface.hpp>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.hpp>
#include <fastdds/rtps/transport/shared_mem/SharedMemTransportDescriptor.hpp>
#include <fastdds/utils/IPLocator.hpp>
#else
#include <fastdds/rtps/common/WriteParams.h>
#include <fastdds/rtps/network/SenderResource.h>
#include <fastdds/rtps/participant/ParticipantDiscoveryInfo.h>
#include <fastdds/rtps/reader/ReaderDiscoveryInfo.h>
#include <fastdds/rtps/transport/TransportInterface.h>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.h>
#include <fastdds/rtps/transport/shared_mem/SharedMemTransportDescriptor.h>
#include <fastdds/rtps/writer/WriterDiscoveryInfo.h>
#include <fastrtps/attributes/LibrarySettingsAttributes.h>
#include <fastrtps/types/TypesBase.h>
#include <fastrtps/utils/IPLocator.h>
#include <fastrtps/xmlparser/XMLProfileManager.h>

#include <fastdds/rtps/common/LocatorsIterator.hpp>
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include "middleware/middleware.h"

namespace perflab::middleware::fastdds {

namespace dds = eprosima::fastdds::dds;
namespace network = eprosima::fastdds::rtps;  // transports
#if PERFLAB_FASTDDS_3
namespace rtps = eprosima::fastdds::rtps;
using Duration = dds::Duration_t;
using ReturnCode = dds::ReturnCode_t;
using IpLocator = rtps::IPLocator;
using LibrarySettings = eprosima::fastdds::LibrarySettings;
inline constexpr auto kIntraprocessOff = eprosima::fastdds::INTRAPROCESS_OFF;
inline constexpr auto kIntraprocessFull = eprosima::fastdds::INTRAPROCESS_FULL;
using DeadlineMissed = dds::RequestedDeadlineMissedStatus;
using OfferedDeadlineMissed = dds::OfferedDeadlineMissedStatus;
using LivelinessLost = dds::LivelinessLostStatus;
using LivelinessChanged = dds::LivelinessChangedStatus;
using ParticipantData = dds::ParticipantBuiltinTopicData;
using ReaderData = dds::SubscriptionBuiltinTopicData;
using WriterData = dds::PublicationBuiltinTopicData;
using ParticipantStatus = rtps::ParticipantDiscoveryStatus;
using ReaderStatus = rtps::ReaderDiscoveryStatus;
using WriterStatus = rtps::WriterDiscoveryStatus;

inline constexpr auto kOk = dds::RETCODE_OK;
inline constexpr auto kBadParameter = dds::RETCODE_BAD_PARAMETER;
inline bool succeeded(ReturnCode code) { return code == dds::RETCODE_OK; }
inline bool is_no_data(ReturnCode code) { return code == dds::RETCODE_NO_DATA; }
inline bool is_timeout(ReturnCode code) { return code == dds::RETCODE_TIMEOUT; }
inline int number_of(ReturnCode code) { return static_cast<int>(code); }
#else
namespace rtps = eprosima::fastrtps::rtps;
using Duration = eprosima::fastrtps::Duration_t;
using ReturnCode = eprosima::fastrtps::types::ReturnCode_t;
using IpLocator = rtps::IPLocator;
using LibrarySettings = eprosima::fastrtps::LibrarySettingsAttributes;
inline constexpr auto kIntraprocessOff = eprosima::fastrtps::INTRAPROCESS_OFF;
inline constexpr auto kIntraprocessFull = eprosima::fastrtps::INTRAPROCESS_FULL;
using DeadlineMissed = eprosima::fastrtps::RequestedDeadlineMissedStatus;
using OfferedDeadlineMissed = eprosima::fastrtps::OfferedDeadlineMissedStatus;
using LivelinessLost = eprosima::fastrtps::LivelinessLostStatus;
using LivelinessChanged = eprosima::fastrtps::LivelinessChangedStatus;
using ParticipantStatus = rtps::ParticipantDiscoveryInfo::DISCOVERY_STATUS;
using ReaderStatus = rtps::ReaderDiscoveryInfo::DISCOVERY_STATUS;
using WriterStatus = rtps::WriterDiscoveryInfo::DISCOVERY_STATUS;

inline constexpr auto kOk = ReturnCode::RETCODE_OK;
inline constexpr auto kBadParameter = ReturnCode::RETCODE_BAD_PARAMETER;
inline bool succeeded(const ReturnCode& code) { return code == ReturnCode::RETCODE_OK; }
inline bool is_no_data(const ReturnCode& code) { return code == ReturnCode::RETCODE_NO_DATA; }
inline bool is_timeout(const ReturnCode& code) { return code == ReturnCode::RETCODE_TIMEOUT; }
inline int number_of(const ReturnCode& code) { return static_cast<int>(code()); }
#endif
inline constexpr std::size_t kCacheLine = 64;

// What a sender does is a function that it holds, whose name differs.
class SendingResource : public rtps::SenderResource {
 protected:
  using SenderResource::SenderResource;
#if PERFLAB_FASTDDS_3
  auto& sending() noexcept { return send_buffers_lambda_; }
#else
  auto& sending() noexcept { return send_lambda_; }
#endif
};

// Whether this is the key of an instance by itself, which earlier versions do not tell from a message.
template <typename Payload>
bool is_key(const Payload& payload) noexcept {
  if constexpr (requires { payload.is_serialized_key; }) return payload.is_serialized_key;
  return false;
}

// write() with parameters returns a bool in Fast DDS 2.
inline bool succeeded(bool done) { return done; }

inline Duration duration(std::int64_t ns) {
#if PERFLAB_FASTDDS_3
  if (ns == PERFLAB_DURATION_INFINITE) return dds::c_TimeInfinite;
#else
  if (ns == PERFLAB_DURATION_INFINITE) return eprosima::fastrtps::c_TimeInfinite;
#endif
  return {static_cast<std::int32_t>(ns / 1'000'000'000), static_cast<std::uint32_t>(ns % 1'000'000'000)};
}

// The source time stamp of a message, exact to the nanosecond.
inline rtps::Time_t source_time(std::int64_t ns) {
  rtps::Time_t time;
  time.from_ns(ns);
  return time;
}

inline perflab_identity identity(const rtps::GUID_t& guid) {
  perflab_identity out;
  // Prefix and entity are contiguous; read in one step, because every take does this.
  static_assert(std::is_standard_layout_v<rtps::GUID_t> && sizeof guid == sizeof out.bytes &&
                offsetof(rtps::GUID_t, entityId) == rtps::GuidPrefix_t::size);
  std::memcpy(out.bytes, &guid, sizeof out.bytes);
  return out;
}

inline rtps::GUID_t to_guid(const perflab_identity& given) {
  rtps::GUID_t guid;
  std::memcpy(guid.guidPrefix.value, given.bytes, rtps::GuidPrefix_t::size);
  std::memcpy(guid.entityId.value, given.bytes + rtps::GuidPrefix_t::size, rtps::EntityId_t::size);
  return guid;
}

inline std::int64_t nanoseconds(const Duration& given) {
  return given == duration(PERFLAB_DURATION_INFINITE)
             ? PERFLAB_DURATION_INFINITE
             : std::int64_t{given.seconds} * 1'000'000'000 + std::int64_t{given.nanosec};
}

}  // namespace perflab::middleware::fastdds
