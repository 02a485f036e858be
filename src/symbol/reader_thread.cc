// SPDX-License-Identifier: Apache-2.0
// Only time in which the thread does not compute counts as blocked: a large file is no silent one.
#include "symbol/reader_thread.h"

#include <time.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>

namespace pkprof {

struct ReaderThread::Line {
  std::mutex mutex;
  std::condition_variable changed;
  Task task;
  bool closed = false;
  bool given_up = false;
};

ReaderThread::ReaderThread() : given_up_(std::make_shared<std::atomic<size_t>>(0)) {}

ReaderThread::~ReaderThread() {
  if (!line_) return;
  const std::scoped_lock lock(line_->mutex);
  line_->closed = true;
  line_->changed.notify_one();
}

void ReaderThread::serve(const std::shared_ptr<Line>& line,
                         const std::shared_ptr<std::atomic<size_t>>& given_up) {
  std::unique_lock lock(line->mutex);
  for (;;) {
    line->changed.wait(lock, [&] { return line->task || line->closed; });
    if (!line->task) break;
    Task task = std::exchange(line->task, nullptr);
    lock.unlock();
    task();
    task = nullptr;
    lock.lock();
  }
  if (line->given_up) --*given_up;
}

// False when too many are blocked. Where no thread can be had the caller does the work itself.
bool ReaderThread::begin(Task task) {
  if (!line_) {
    if (*given_up_ >= most_given_up) return false;
    auto line = std::make_shared<Line>();
    try {
      std::thread thread(serve, line, given_up_);
      thread_ = thread.native_handle();
      thread.detach();
    } catch (const std::system_error&) {
      task();
      return true;
    }
    line_ = std::move(line);
  }
  begun_ = std::chrono::steady_clock::now();
  cpu_time_at_begin_ = cpu_time();
  const std::scoped_lock lock(line_->mutex);
  line_->task = std::move(task);
  line_->changed.notify_one();
  return true;
}

void ReaderThread::give_up() {
  const auto line = std::exchange(line_, nullptr);
  const std::scoped_lock lock(line->mutex);
  line->closed = line->given_up = true;
  line->changed.notify_one();
  ++*given_up_;
  patience_ = std::max<Duration>(patience_ / 2, shortest);
}

ReaderThread::Duration ReaderThread::blocked() const {
  return std::chrono::steady_clock::now() - begun_ - (cpu_time() - cpu_time_at_begin_);
}

ReaderThread::Duration ReaderThread::cpu_time() const {
  clockid_t clock = 0;
  timespec time = {};
  if (::pthread_getcpuclockid(thread_, &clock) != 0 || ::clock_gettime(clock, &time) != 0)
    return {};
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace pkprof
