// SPDX-License-Identifier: Apache-2.0
#include "report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace growpage::eval {
namespace {

std::string text_of(const Interval& i, double scale = 1, int digits = 3) {
  return fmt::format("{:.{}f} [{:.{}f}, {:.{}f}]", scale * i.value, digits, scale * i.low, digits,
                     scale * i.high, digits);
}

/// How qualities are written: pass@1 in percent, or NLL, whose quality is its negative.
struct QualityFormat {
  explicit QualityFormat(const Json& results) : passes(results.at("quality") == "pass@1") {}

  [[nodiscard]] std::string value(const Json& json) const {
    const Interval i = to_interval(json);
    return passes ? text_of(i, 100, 1) : text_of({-i.value, -i.high, -i.low}, 1, 4);
  }
  /// Higher is better either way.
  [[nodiscard]] std::string difference(const Json& json) const {
    return passes ? text_of(to_interval(json), 100, 1) : text_of(to_interval(json), 1, 4);
  }
  [[nodiscard]] const char* name() const { return passes ? "pass@1 %" : "NLL"; }

  bool passes;
};

std::string signal_section(const Json& json) {
  std::string out = fmt::format(
      "## Signal\n\n{} boundaries of {} texts; Δ and the change of the true working set over the "
      "next page\n\n| | | ρ with the change from the last page [95 %] | same sign | in slots | ρ "
      "with the change from the long level | same sign | ρ with the ideal Δ | > 0 |\n"
      "|---|---|---|---|---|---|---|---|---|\n",
      json.at("boundaries").get<std::int64_t>(), json.at("texts").get<std::int64_t>());
  const auto add_row = [&out](const std::string& group, const std::string& name, const Json& v) {
    out += fmt::format("| {} | {} |", group, name);
    for (const char* key : {"rho", "sign_agreement", "rho_slots", "rho_level",
                            "sign_agreement_level", "rho_ideal", "above_zero"}) {
      out += fmt::format(" {} |", text_of(to_interval(v.at(key))));
    }
    out += '\n';
  };
  for (const Json& v : json.at("variants")) {
    add_row(v.at("group").get<std::string>(), v.at("name").get<std::string>(), v);
  }
  const Json& decisions = json.at("decisions");
  const std::string deciding =
      fmt::format("{} where growpage decides", decisions.at("boundaries").get<std::int64_t>());
  add_row("default", deciding, decisions);
  add_row("ideal Δ", "", json.at("ideal"));
  add_row("ideal Δ", deciding, decisions.at("ideal"));
  const Interval lasting = to_interval(json.at("rho_lasting"));
  if (!std::isnan(lasting.value)) {
    out +=
        fmt::format("\nρ of Δ and the lasting tokens on the next page: {}, {}: {}\n",
                    text_of(lasting), deciding, text_of(to_interval(decisions.at("rho_lasting"))));
  }
  return out + "\n";
}

std::string advantage_section(const Json& json) {
  std::string out = fmt::format(
      "## Growth advantage\n\n{} boundaries; NLL compressed less grown\n\n"
      "| Δ | boundaries | next page, a token [95 %] | to the end, nats |\n|---|---|---|---|\n",
      json.at("boundaries").get<std::int64_t>());
  for (const Json& bin : json.at("bins")) {
    out += fmt::format("| {:.4f} … {:.4f} | {} | {} | {} |\n", to_number(bin.at("delta_low")),
                       to_number(bin.at("delta_high")), bin.at("boundaries").get<std::int64_t>(),
                       text_of(to_interval(bin.at("advantage")), 1, 4),
                       text_of(to_interval(bin.at("advantage_to_end")), 1, 2));
  }
  out += fmt::format("| top less bottom | | {} | {} |\n",
                     text_of(to_interval(json.at("top_less_bottom")), 1, 4),
                     text_of(to_interval(json.at("top_less_bottom_to_end")), 1, 2));
  return out + fmt::format("| ρ with Δ | | {} | {} |\n\n", text_of(to_interval(json.at("rho"))),
                           text_of(to_interval(json.at("rho_to_end"))));
}

std::string table_section(const Json& json, const QualityFormat& quality) {
  std::string out = fmt::format(
      "## Policies\n\n| policy | {} [95 %] | KV tokens | tokens a text | tokens/s | grow % | grow "
      "| compact | shrink | fallback | preempt |\n|---|---|---|---|---|---|---|---|---|---|---|\n",
      quality.name());
  for (const Json& r : json.at("rows")) {
    const auto count = [&r](const char* name) { return r.at(name).get<std::int64_t>(); };
    const double texts = to_number(r.at("texts"));
    out +=
        fmt::format("| {} | {} | {:.1f} | {:.0f} | {:.0f} | {:.1f} | {} | {} | {} | {} | {} |\n",
                    r.at("name").get<std::string>(), quality.value(r.at("quality")),
                    to_number(r.at("kv_tokens")), to_number(r.at("generated")) / texts,
                    to_number(r.at("tokens_per_s")), to_number(r.at("grow_percent")), count("grow"),
                    count("compact"), count("shrink"), count("fallback"), count("preempt"));
  }
  out +=
      "\n| growpage against | KV tokens | difference [95 %], higher is better |\n|---|---|---|\n";
  for (const Json& d : json.at("differences")) {
    out += fmt::format("| {} | {:.1f} | {} |\n", d.at("against").get<std::string>(),
                       to_number(d.at("kv_tokens")), quality.difference(d.at("difference")));
  }
  return out + "\n";
}

std::string budget_section(const Json& json) {
  std::string out =
      "## Smallest sufficient budget\n\n| fixed pages | passed % [95 %] |\n|---|---|\n";
  const Json& budgets = json.at("budgets");
  for (std::size_t i = 0; i < budgets.size(); ++i) {
    out += fmt::format("| {} | {} |\n", budgets[i].get<int>(),
                       text_of(to_interval(json.at("passed")[i]), 100, 1));
  }
  return out + fmt::format(
                   "| growpage | {} |\n\nρ of B* and the pages growpage gave, {} problems: {}\n\n",
                   text_of(to_interval(json.at("growpage_passed")), 100, 1),
                   json.at("solved").get<std::int64_t>(), text_of(to_interval(json.at("rho"))));
}

std::string ablation_section(const Json& json, const QualityFormat& quality) {
  std::string out = fmt::format(
      "## Ablation of growpage\n\n| | | {} [95 %] | KV tokens | grow % | less the default's "
      "[95 %] |\n|---|---|---|---|---|---|\n",
      quality.name());
  for (const Json& r : json.at("rows")) {
    out += fmt::format("| {} | {} | {} | {:.1f} | {:.1f} | {} |\n",
                       r.at("group").get<std::string>(), r.at("name").get<std::string>(),
                       quality.value(r.at("quality")), to_number(r.at("kv_tokens")),
                       to_number(r.at("grow_percent")), quality.difference(r.at("difference")));
  }
  return out + "\n";
}

std::string timeline_section(const Json& json) {
  std::string out =
      "## Attention over decoding\n\n| slots | top 5 % | top 10 % | top 20 % | texts |\n"
      "|---|---|---|---|---|\n";
  const Json& rows = json.at("concentration");
  const std::size_t step = std::max<std::size_t>(rows.size() / 10, 1);
  for (std::size_t i = 0; i < rows.size(); i += step) {
    const Json& r = rows[i];
    out += fmt::format("| {} | {:.3f} | {:.3f} | {:.3f} | {} |\n", r[0].get<int>(), to_number(r[1]),
                       to_number(r[2]), to_number(r[3]), r[4].get<int>());
  }
  return out + "\n";
}

}  // namespace

std::string to_markdown(const Json& results) {
  const QualityFormat quality(results);
  std::string out;
  if (results.contains("signal")) out += signal_section(results.at("signal"));
  if (results.contains("advantage")) out += advantage_section(results.at("advantage"));
  if (results.contains("table")) out += table_section(results.at("table"), quality);
  if (results.contains("budget")) out += budget_section(results.at("budget"));
  if (results.contains("ablation")) out += ablation_section(results.at("ablation"), quality);
  if (results.contains("timeline")) out += timeline_section(results.at("timeline"));
  return out;
}

std::string to_markdown(std::span<const Claim> claims) {
  std::string out = "## Claims\n\n| | claim | measured [95 %] |\n|---|---|---|\n";
  for (const Claim& c : claims) {
    out += fmt::format("| {} | {} | {} |\n",
                       !c.held   ? "FAILED"
                       : c.clear ? "held, clear"
                                 : "held",
                       c.text, text_of(c.measured, 1, 4));
  }
  return out + "\n";
}

}  // namespace growpage::eval
