// SPDX-License-Identifier: Apache-2.0
// Where the workloads run: two namespaces with a veth pair, a file system on a loop device, a
// directory for files. Each is made when first asked for, lasts for the whole run, so that nothing
// but the workload itself happens in a slice, and goes with this object.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "testdisk.h"
#include "testnet.h"

namespace pkprof::overhead {

// A directory of our own, gone with the object. Those of processes that were killed go when the
// next one is made.
class TempDir {
 public:
  [[nodiscard]] static Result<TempDir> create();
  TempDir(TempDir&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TempDir& operator=(TempDir&&) = delete;
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir();
  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  explicit TempDir(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// Path of a program in PATH or the sbin directories, or "".
[[nodiscard]] std::string find_program(const std::string& name);

[[nodiscard]] Result<> write_file(const std::string& path, const std::string& text);

class Stage {
 public:
  Stage(std::string bin, TempDir dir) : bin_(std::move(bin)), dir_(std::move(dir)) {}

  // A program that was built with us.
  [[nodiscard]] std::string bin(const std::string& name) const { return bin_ + "/" + name; }
  [[nodiscard]] const TempDir& dir() const { return dir_; }
  [[nodiscard]] Result<testnet::Pair*> pair();
  // A path on the file system.
  [[nodiscard]] Result<std::string> disk_path(const std::string& name);
  // Of a file there of 64 MiB, written.
  [[nodiscard]] Result<std::string> disk_file();
  void keep(testnet::Child server) { servers_.push_back(std::move(server)); }

 private:
  std::string bin_;
  TempDir dir_;
  std::optional<testnet::Pair> pair_;
  std::optional<testnet::Disk> disk_;
  std::string disk_file_;
  std::vector<testnet::Child> servers_;  // after what they run in: they end first
};

}  // namespace pkprof::overhead
