// SPDX-License-Identifier: Apache-2.0
// The loads of the overhead suite that are not about the network: each does one thing as fast as it
// can, until its time is up, and prints how often as "operations".
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "workload.h"

namespace {

using namespace pkprof::workload;

struct Options {
  Common common;
  std::string file;
  uint64_t chunk = 4096;
  bool direct = false;
  int processes = 0;
  uint64_t megabytes = 64;
  uint64_t sync_mb = 16;
  std::string script;
  int jobs = 2;
};

// A child that does not outlive us.
pid_t fork_child() {
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) die("fork");
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
  }
  return pid;
}

// Waits for that child, or for any (-1), and wants it to have ended well.
void reap(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) die("waiting for a child");
  }
  if (status != 0) die("a child failed, status " + std::to_string(status), false);
}

// The cheapest system call.
void getppid_loop(const Options&, WorkerStats& mine) {
  while (!stopped()) {
    for (int i = 0; i < 100; ++i) syscall(SYS_getppid);
    mine.operations += 100;
  }
}

// A byte to and fro between two processes: on one CPU, two context switches each time.
void ping_pong(const Options&, WorkerStats& mine) {
  int there[2];
  int back[2];
  if (pipe2(there, O_CLOEXEC) || pipe2(back, O_CLOEXEC)) die("pipe");
  char byte = 'x';
  const pid_t pid = fork_child();
  if (pid == 0) {
    close(there[1]);
    close(back[0]);
    while (read(there[0], &byte, 1) == 1) {
      if (write(back[1], &byte, 1) != 1) break;
    }
    _exit(0);
  }
  close(there[0]);
  close(back[1]);
  while (!stopped()) {
    if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1) {
      if (errno != EINTR) die("the pipe");
      break;
    }
    ++mine.operations;
  }
  close(there[1]);
  reap(pid);
  close(back[0]);
}

// Processes one after the other, each another program.
void spawn(const Options&, WorkerStats& mine) {
  while (!stopped()) {
    const pid_t pid = fork_child();
    if (pid == 0) {
      execl("/bin/true", "true", nullptr);
      _exit(127);
    }
    reap(pid);
    ++mine.operations;
  }
}

// As `make -j JOBS` does: a shell for each job, so many at a time. The script's $0 is a number that
// no other job has at that time. Jobs that have begun are finished, and count in full.
void build(const Options& options, WorkerStats& mine) {
  std::array<pid_t, 64> running = {};
  const auto slots = static_cast<size_t>(options.jobs);
  size_t alive = 0;
  while (alive > 0 || !stopped()) {
    for (size_t i = 0; i < slots && !stopped(); ++i) {
      if (running[i] != 0) continue;
      running[i] = fork_child();
      if (running[i] == 0) {
        execl("/bin/sh", "sh", "-e", "-c", options.script.c_str(), std::to_string(i).c_str(),
              nullptr);
        _exit(127);
      }
      ++alive;
    }
    int status = 0;
    const pid_t pid = waitpid(-1, &status, 0);
    if (pid < 0 && errno != EINTR && errno != ECHILD) die("waiting for a job");
    if (pid < 0) continue;
    if (status != 0) die("a job failed, status " + std::to_string(status), false);
    for (size_t i = 0; i < slots; ++i) {
      if (running[i] == pid) running[i] = 0;
    }
    --alive;
    ++mine.operations;
  }
}

std::unique_ptr<char, decltype(&std::free)> make_buffer(uint64_t bytes) {
  std::unique_ptr<char, decltype(&std::free)> buffer(
      static_cast<char*>(std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096)), &std::free);
  if (!buffer) die("memory");
  std::memset(buffer.get(), 0x5a, bytes);
  return buffer;
}

// The file from its start to its end, over and over; from the page cache unless past it.
void read_file(const Options& options, WorkerStats& mine) {
  const int fd = open(options.file.c_str(), O_RDONLY | O_CLOEXEC | (options.direct ? O_DIRECT : 0));
  struct stat info = {};
  if (fd < 0 || fstat(fd, &info) != 0) die("opening " + options.file);
  const uint64_t chunks = static_cast<uint64_t>(info.st_size) / options.chunk;
  if (chunks == 0) die(options.file + " is smaller than one read", false);
  const auto buffer = make_buffer(options.chunk);
  while (!stopped()) {
    const uint64_t at = mine.operations % chunks * options.chunk;
    const ssize_t n = pread(fd, buffer.get(), options.chunk, static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n != static_cast<ssize_t>(options.chunk)) die("reading " + options.file);
    ++mine.operations;
  }
  close(fd);
}

// Through the page cache, written back every so often by the kernel's flusher thread: syncfs() has
// it do so, where fsync() would have the caller do it. What is written counts once it is on the
// disk.
void write_file(const Options& options, WorkerStats& mine) {
  const int fd = open(options.file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) die("opening " + options.file);
  const auto buffer = make_buffer(options.chunk);
  const uint64_t size = options.megabytes << 20;
  const uint64_t batch = options.sync_mb << 20;
  uint64_t written = 0;
  do {
    for (const uint64_t end = written + batch; written < end; written += options.chunk) {
      const auto at = static_cast<off_t>(written % size);
      while (pwrite(fd, buffer.get(), options.chunk, at) != static_cast<ssize_t>(options.chunk)) {
        if (errno != EINTR) die("writing " + options.file);
      }
    }
    while (syncfs(fd) != 0) {
      if (errno != EINTR) die("syncing " + options.file);
    }
    mine.operations = written / options.chunk;
  } while (!stopped());
  close(fd);
}

int run(int argc, char** argv) {
  ArgParser app("One thing, as fast as it goes.");
  app.show_defaults();
  app.require_subcommand();
  Options options;
  void (*load)(const Options&, WorkerStats&) = nullptr;
  const auto add = [&](const char* name, const char* text,
                       void (*body)(const Options&, WorkerStats&)) {
    auto sub = app.subcommand(name, text);
    options.common.add_to(sub);
    sub.when_used([&load, body] { load = body; });
    return sub;
  };
  add("getppid", "the cheapest system call", getppid_loop);
  add("switch", "a byte to and fro between two processes", ping_pong);
  add("spawn", "fork, execute /bin/true, wait", spawn);
  auto jobs = add("build", "shell jobs, some at a time", build);
  jobs.add("--script", options.script, "what each job runs; $0 is its slot").required();
  jobs.add("--jobs", options.jobs, "at a time").range(1, 64);
  auto reader = add("read", "read a file over and over", read_file);
  reader.add("--file", options.file, "path").required();
  reader.add("--chunk", options.chunk, "bytes of a read").range(1, 1 << 30);
  reader.add("--direct", options.direct, "past the page cache");
  reader.add("--processes", options.processes, "that read; 0: this one").range(0, 64);
  auto writer = add("write", "write a file over and over, with write-back", write_file);
  writer.add("--file", options.file, "path").required();
  writer.add("--chunk", options.chunk, "bytes of a write").range(1, 1 << 30);
  writer.add("--megabytes", options.megabytes, "size of the file");
  writer.add("--sync-mb", options.sync_mb, "write back after so many megabytes");
  if (const auto end = app.parse(argc, argv)) return *end;

  begin(options.common);
  const uint64_t start = now_ns();
  const auto workers =
      run_workers(options.processes, [&](int, WorkerStats& mine) { load(options, mine); });
  uint64_t operations = 0;
  for (const WorkerStats& worker : workers) operations += worker.operations;
  print_result(
      {{"program", "bench_load"}, {"wall_ns", now_ns() - start}, {"operations", operations}});
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return pkprof::workload::guarded(run, argc, argv);
}
