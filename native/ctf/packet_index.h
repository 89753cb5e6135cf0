// Finds the packets in a file of events.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ctf/decoder.h"
#include "ctf/ledger.h"
#include "ctf/mapped_file.h"
#include "ctf/trace.h"

namespace perflab::ctf {

inline constexpr std::uint64_t kPacketMagic = 0xC1FC1FC1;

using Decoders = std::map<std::uint64_t, std::shared_ptr<const Decoder>>;  // by id of the stream class

// The packets of one file, in its order; all are of one stream.
struct FileIndex {
  std::uint64_t stream_class = 0;
  std::optional<std::uint64_t> instance;
  std::optional<std::uint32_t> cpu;
  std::vector<Packet> packets;
};

// `to_ns` turns cycles into ns. What is wrong goes to the ledger under the name `file`; the packets before
// and, where packets begin with the magic number, behind it are indexed. Nothing where the file has no
// packet.
[[nodiscard]] std::optional<FileIndex> index_packets(const Metadata& metadata, const Decoders& decoders,
                                                     const MappedFile& mapped, const std::string& file,
                                                     const std::function<std::int64_t(std::uint64_t)>& to_ns,
                                                     Ledger& ledger);

// Writes into the ledger what the tracer says that it did not write: counts of events, gaps in the numbers of
// packets. The packets are those of all files in the order of time. Sums go to the stream.
void note_losses(Stream& stream, const std::function<std::int64_t(std::uint64_t)>& to_ns, Ledger& ledger);

}  // namespace perflab::ctf
