// SPDX-License-Identifier: Apache-2.0
// growpage-replay: see docs/replay.md.
#include "options.hpp"
#include "session.hpp"

int main(int argc, char** argv) {
  using namespace growpage::replay;  // NOLINT(google-build-using-namespace)
  const ParsedOptions parsed = parse_options(argc, argv);
  if (parsed.done) return parsed.code;
  return parsed.options.demo ? run_demo(parsed.options) : run_session(parsed.options);
}
