// SPDX-License-Identifier: Apache-2.0
// A disk of one's own for a test: a file system on a loop device on a file that has no name.
//
// Nothing is left behind, however the test ends: the file is unlinked, the devices go with their
// last user (LO_FLAGS_AUTOCLEAR; a mapped device is removed as soon as it is in use), and the file
// system is never mounted anywhere but held by a descriptor (fsmount), through which it is reached.
//
// Needs root, the loop driver, the file system's mkfs, and for mapped devices dmsetup.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace pkprof::testnet {

class Disk {
 public:
  struct Options {
    std::string file_system = "ext4";
    uint64_t megabytes = 512;
    bool direct = false;  // the device reads and writes its file past the page cache
    // What stands between the file system and the loop device: a target of the device mapper.
    enum class Mapper : uint8_t {
      none,
      striped,  // pieces of 8 KiB, by turns from the device's two halves: everything is split
      crypt,    // AES-XTS, done by the target's work queues and its thread
    } mapper = Mapper::none;
  };
  [[nodiscard]] static Result<Disk> create(const Options& options);

  // A path on the disk, for this process and for others as long as this one lives.
  [[nodiscard]] std::string path(std::string_view name) const;
  [[nodiscard]] int fd() const { return root_.get(); }  // of its top directory

 private:
  explicit Disk(Fd root) : root_(std::move(root)) {}
  Fd root_;
};

}  // namespace pkprof::testnet
