// SPDX-License-Identifier: Apache-2.0
// A few kilobytes may unpack to any size, and ask for a dictionary of gigabytes: both have a limit.
#include "symbol/elf/elf_mini_debug.h"

#include <lzma.h>

#include <algorithm>
#include <string>

namespace pkprof {
namespace {

constexpr uint64_t max_packed = uint64_t{16} << 20;
constexpr size_t max_image = size_t{64} << 20;
constexpr uint64_t max_working_memory = uint64_t{128} << 20;
constexpr size_t first_size = size_t{256} << 10;

std::optional<std::string> unpack(const Elf_Data& packed) {
  lzma_stream stream = LZMA_STREAM_INIT;
  if (lzma_stream_decoder(&stream, max_working_memory, 0) != LZMA_OK) return std::nullopt;
  stream.next_in = static_cast<const uint8_t*>(packed.d_buf);
  stream.avail_in = packed.d_size;
  std::string image;
  lzma_ret result = LZMA_OK;
  while (result == LZMA_OK && image.size() < max_image) {
    const size_t done = image.size();
    image.resize(std::min(max_image, std::max(first_size, done * 2)));
    stream.next_out = reinterpret_cast<uint8_t*>(image.data()) + done;
    stream.avail_out = image.size() - done;
    while (result == LZMA_OK && stream.avail_out > 0) result = lzma_code(&stream, LZMA_FINISH);
  }
  image.resize(stream.total_out);
  lzma_end(&stream);
  return result == LZMA_STREAM_END ? std::optional(std::move(image)) : std::nullopt;
}

}  // namespace

std::optional<ElfHandle> open_mini_debug(const ElfHandle& elf) {
  const ElfSection* section = elf.section(".gnu_debugdata");
  const Elf_Data* data = section == nullptr ? nullptr : elf.data(*section, max_packed);
  if (data == nullptr) return std::nullopt;
  auto image = unpack(*data);
  if (!image) return std::nullopt;
  auto mini = ElfHandle::from_memory(std::move(*image));
  if (!mini) return std::nullopt;
  return std::move(*mini);
}

}  // namespace pkprof
