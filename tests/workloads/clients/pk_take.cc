// SPDX-License-Identifier: Apache-2.0
// Takes messages that nobody waits for an answer of, and burns the CPU time that each asks for:
// from a pipe, a FIFO, a POSIX message queue.
#include <fcntl.h>
#include <mqueue.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "ask.h"
#include "workload.h"

namespace {

using namespace pkprof::workload;

void burn(const Truth& truth, const Ask& ask) {
  truth.add(ask.client, burn_ns(ask.cost_us));
}

// There is no end of it when nobody has it open for writing.
void take_of_fifo(const std::string& path, const Truth& truth) {
  if (mkfifo(path.c_str(), 0600)) die("mkfifo");
  const int fd = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) die("open");
  fcntl(fd, F_SETFL, 0);
  say_ready();
  for (Ask ask; !stopped();) {
    if (read_all(fd, ask))
      burn(truth, ask);
    else
      usleep(1000);
  }
}

void take_of_queue(const std::string& name, const Truth& truth) {
  mq_attr attributes{};
  attributes.mq_maxmsg = 10;
  attributes.mq_msgsize = sizeof(Ask);
  const mqd_t queue = mq_open(name.c_str(), O_RDONLY | O_CREAT | O_EXCL, 0600, &attributes);
  if (queue < 0) die("mq_open");
  say_ready();
  Ask ask;
  while (!stopped() && mq_receive(queue, reinterpret_cast<char*>(&ask), sizeof ask, nullptr) > 0)
    burn(truth, ask);
  mq_unlink(name.c_str());
}

int run(int argc, char** argv) {
  Common common;
  std::string fifo;
  std::string queue;
  std::string told;
  ArgParser app("Takes messages from a FIFO or a message queue.");
  app.show_defaults();
  common.add_to(app);
  app.add("--fifo", fifo, "make it there");
  app.add("--queue", queue, "make one of that name");
  app.add("--truth", told, "a file for what was done for each client: pid and ns");
  if (const auto end = app.parse(argc, argv)) return *end;
  begin(common);
  const Truth truth(told);
  if (!fifo.empty())
    take_of_fifo(fifo, truth);
  else
    take_of_queue(queue, truth);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return pkprof::workload::guarded(run, argc, argv);
}
