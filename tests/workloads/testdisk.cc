// SPDX-License-Identifier: Apache-2.0
#include "testdisk.h"

#include <fcntl.h>
#include <linux/loop.h>
#include <linux/mount.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>

#include "testnet.h"

namespace pkprof::testnet {
namespace {

std::string numbered(const char* directory, int number) {
  return directory + std::to_string(number);
}

// A file without a name, of that many bytes.
Result<Fd> make_image(uint64_t bytes) {
  const char* directory = std::getenv("TMPDIR");
  Fd image(open(directory != nullptr ? directory : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!image.valid()) return fail_errno("a file for the disk");
  if (ftruncate(image.get(), static_cast<off_t>(bytes))) return fail_errno("a file for the disk");
  return image;
}

// The loop device, which is gone when nobody uses it any more.
Result<Fd> make_device(const Fd& image, bool direct, std::string& path) {
  const Fd control(open("/dev/loop-control", O_RDWR | O_CLOEXEC));
  if (!control.valid()) return fail_errno("/dev/loop-control");
  for (int tries = 0; tries < 20; ++tries) {
    const int number = ioctl(control.get(), LOOP_CTL_GET_FREE);
    if (number < 0) return fail_errno("a free loop device");
    path = numbered("/dev/loop", number);
    Fd device(open(path.c_str(), O_RDWR | O_CLOEXEC));
    loop_config config{};
    config.fd = static_cast<uint32_t>(image.get());
    config.block_size = direct ? 4096 : 0;
    config.info.lo_flags = LO_FLAGS_AUTOCLEAR | (direct ? LO_FLAGS_DIRECT_IO : 0);
    if (device.valid() && ioctl(device.get(), LOOP_CONFIGURE, &config) == 0) return device;
    if (errno != EBUSY && errno != ENOENT) return fail_errno(path);
  }
  return fail("no loop device could be had");
}

// A device of the device mapper over all of `device`. Its path; and it goes when the descriptor,
// and whoever else has it open by then, is closed.
Result<Fd> map_device(Disk::Options::Mapper mapper, uint64_t bytes, std::string& path) {
  const uint64_t sectors = bytes / 512;
  const std::string halves = std::to_string(sectors / 2);
  const std::string table =
      mapper == Disk::Options::Mapper::striped
          ? "0 " + std::to_string(sectors) + " striped 2 16 " + path + " 0 " + path + " " + halves
          : "0 " + std::to_string(sectors) + " crypt aes-xts-plain64 " + std::string(128, 'a') +
                " 0 " + path + " 0";
  static int made = 0;
  const std::string name = "pkprof-test-" + std::to_string(getpid()) + "-" + std::to_string(made++);
  if (auto ran = run_command({"dmsetup", "create", name, "--table", table}); !ran)
    return std::unexpected(ran.error());
  auto minor = run_command({"dmsetup", "info", "-c", "--noheadings", "-o", "minor", name});
  Fd device;
  if (minor) {
    while (minor->ends_with('\n')) minor->pop_back();
    path = "/dev/dm-" + *minor;
    device = Fd(open(path.c_str(), O_RDWR | O_CLOEXEC));
  }
  const int why = errno;
  if (auto ran = run_command({"dmsetup", "remove", "--deferred", name}); !ran)
    return std::unexpected(ran.error());
  if (!minor) return std::unexpected(minor.error());
  errno = why;
  if (!device.valid()) return fail_errno(path);
  return device;
}

// Mounted nowhere: the descriptor is all there is to it.
Result<Fd> mount_apart(const std::string& device, const std::string& file_system) {
  const Fd context(static_cast<int>(syscall(SYS_fsopen, file_system.c_str(), FSOPEN_CLOEXEC)));
  if (!context.valid()) return fail_errno("the file system " + file_system);
  if (syscall(SYS_fsconfig, context.get(), FSCONFIG_SET_STRING, "source", device.c_str(), 0) ||
      syscall(SYS_fsconfig, context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0))
    return fail_errno("mounting " + device);
  const Fd mount(static_cast<int>(syscall(SYS_fsmount, context.get(), FSMOUNT_CLOEXEC, 0)));
  if (!mount.valid()) return fail_errno("mounting " + device);
  // That descriptor is good for a path only; this one is a directory's.
  Fd top(openat(mount.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!top.valid()) return fail_errno("mounting " + device);
  return top;
}

}  // namespace

Result<Disk> Disk::create(const Options& options) {
  auto image = make_image(options.megabytes << 20);
  if (!image) return std::unexpected(image.error());
  std::string path;
  auto device = make_device(*image, options.direct, path);
  if (!device) return std::unexpected(device.error());
  Fd mapped;
  if (options.mapper != Options::Mapper::none) {
    auto made = map_device(options.mapper, options.megabytes << 20, path);
    if (!made) return std::unexpected(made.error());
    mapped = std::move(*made);
  }
  if (auto made = run_command({"mkfs." + options.file_system, "-q", path}); !made)
    return std::unexpected(made.error());
  auto root = mount_apart(path, options.file_system);
  if (!root) return std::unexpected(root.error());
  return Disk(std::move(*root));
}

std::string Disk::path(std::string_view name) const {
  return "/proc/" + std::to_string(getpid()) + numbered("/fd/", root_.get()) + "/" +
         std::string(name);
}

}  // namespace pkprof::testnet
