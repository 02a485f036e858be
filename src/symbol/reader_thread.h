// SPDX-License-Identifier: Apache-2.0
// Reads files that may never answer: on a FUSE mount, or of a server that is gone.
//
// No system call on such a file has a time limit, so they are made on a thread of their own. A job
// that stays blocked is given up: its thread is left behind, and another one takes the next job.
// The process can end nonetheless, unless a FUSE server has taken a request and keeps it.
#pragma once

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace pkprof {

// For one caller at a time.
class ReaderThread {
 public:
  // How long the first job may be blocked; the one after a job that was given up half as long, and
  // so on down to `shortest`. So however many files block, together they hold up little.
  static constexpr std::chrono::milliseconds longest{2000};
  static constexpr std::chrono::milliseconds shortest{50};
  static constexpr size_t most_given_up = 64;  // at a time; then no job is begun

  ReaderThread();
  ~ReaderThread();
  ReaderThread(const ReaderThread&) = delete;
  ReaderThread& operator=(const ReaderThread&) = delete;

  // What the job returns; nothing when it was given up. It may go on then, even after this object's
  // end: it must own all that it uses, and close what it opens, since closing may block, too.
  template <typename Job>
  auto run(Job job) -> std::optional<std::invoke_result_t<Job&>> {
    std::packaged_task<std::invoke_result_t<Job&>()> task(std::move(job));
    auto result = task.get_future();
    if (!begin([task = std::move(task)]() mutable { task(); })) return std::nullopt;
    for (auto left = patience_; left > left.zero(); left = patience_ - blocked()) {
      if (result.wait_for(left) == std::future_status::ready) return result.get();
    }
    give_up();
    return std::nullopt;
  }

 private:
  using Duration = std::chrono::nanoseconds;
  using Task = std::move_only_function<void()>;
  struct Line;  // to one thread

  static void serve(const std::shared_ptr<Line>& line,
                    const std::shared_ptr<std::atomic<size_t>>& given_up);
  bool begin(Task task);
  void give_up();
  [[nodiscard]] Duration blocked() const;   // since the job began
  [[nodiscard]] Duration cpu_time() const;  // of the thread

  std::shared_ptr<Line> line_;  // nullptr: no thread is there
  pthread_t thread_ = {};
  std::shared_ptr<std::atomic<size_t>> given_up_;
  Duration patience_ = longest;
  std::chrono::steady_clock::time_point begun_;
  Duration cpu_time_at_begin_ = {};
};

}  // namespace pkprof
