// SPDX-License-Identifier: Apache-2.0
// JSON from files that anyone may have made.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace pkprof {

struct JsonBounds {
  size_t nesting;
  size_t keys = 128;                // of an object: each is compared with all before it
  size_t values = size_t{1} << 23;  // each takes many times what it takes as text
};

// Counts and builds nothing: what nlohmann::json's parser tells of a text. Throws
// `Malformed{reason}` at the first bound that is passed.
template <typename Malformed, typename Json>
class JsonCounter {
 public:
  explicit JsonCounter(const JsonBounds& bounds) : bounds_(bounds) {}

  bool null() { return count(); }
  bool boolean(bool) { return count(); }
  bool number_integer(typename Json::number_integer_t) { return count(); }
  bool number_unsigned(typename Json::number_unsigned_t) { return count(); }
  bool number_float(typename Json::number_float_t, const std::string&) { return count(); }
  bool string(std::string&) { return count(); }
  bool binary(typename Json::binary_t&) { return count(); }
  bool start_object(size_t) { return begin(); }
  bool start_array(size_t) { return begin(); }
  bool end_object() { return end(); }
  bool end_array() { return end(); }
  bool key(std::string&) {
    if (++keys_.back() > bounds_.keys) throw Malformed{"an object has too many keys"};
    return true;
  }
  // What is wrong Json::parse() says, which comes upon it, too.
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) { return false; }

 private:
  bool count() {
    if (keys_.size() > bounds_.nesting) throw Malformed{"nested too deeply"};
    if (++values_ > bounds_.values) throw Malformed{"it has too many values"};
    return true;
  }
  bool begin() {
    count();
    keys_.push_back(0);
    return true;
  }
  bool end() {
    keys_.pop_back();
    return true;
  }

  const JsonBounds bounds_;
  size_t values_ = 0;
  std::vector<size_t> keys_;  // of each object, or list, that is open
};

// Parses an object or a list. Throws `Malformed{reason}` before what is in it costs memory, stack
// or hours; what the library throws otherwise. In two passes, since the library's parser with a
// callback looks through the whole parent at each object's end.
template <typename Malformed, typename Json = nlohmann::ordered_json>
Json parse_bounded(std::string_view text, const JsonBounds& bounds) {
  JsonCounter<Malformed, Json> counter(bounds);
  Json::sax_parse(text, &counter);
  return Json::parse(text);
}

}  // namespace pkprof
