# SPDX-License-Identifier: Apache-2.0
"""See check_outputs.sh."""

import json
import os
import subprocess
import sys

import consumers

GIB = 1 << 30
ANALYZE = os.environ["BUILD"] + "/sparktrace-analyze"
WORK = os.environ["T"]
REPO = WORK + "/repo"
BASELINE = REPO + "/ci/load, memory.json"
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../scenario")
# Ends of attributes, of CDATA, of cells and of code; commands of both kinds on lines of their own; bytes that are no UTF-8.
EVIL = b"\"']]><b>|`*_&amp;\n::error::evil\r\n  ::add-mask::evil\n##[error]evil\x1b[31m\xff%0A::warning::evil\\"
# The same in print: what is no character of a line as \xNN, all else as it is.
PRINTED = "\"']]><b>|`*_&amp;\\x0a::error::evil\\x0d\\x0a  ::add-mask::evil\\x0a##[error]evil\\x1b[31m\\xff%0A::warning::evil\\"
failed = 0


def check(name, *facts):
    """A fact is (what, seen, expected)."""
    global failed
    wrong = [f"{what}: {seen!r}, expected {expected!r}" for what, seen, expected in facts if seen != expected]
    failed += bool(wrong)
    print(f"not ok {name} - {'; '.join(wrong)}" if wrong else f"ok {name}", flush=True)


def pack(lines, name):
    with open(f"{WORK}/{name}.jsonl", "w", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
    subprocess.run([ANALYZE, "pack", f"{WORK}/{name}.jsonl", "-o", f"{WORK}/{name}.zst"], check=True)
    return f"{WORK}/{name}.zst"


def scenario(name):
    with open(f"{FOLDER}/{name}.jsonl", encoding="utf-8") as file:
        return pack([json.loads(line) for line in file if not line.startswith("#")], name)


def evil(trace, name):
    """The same trace, in which the names of files, tensors and functions hold EVIL."""
    lines = []
    dump = subprocess.run([ANALYZE, "dump", trace], check=True, capture_output=True, text=True).stdout
    for line in map(json.loads, dump.splitlines()):
        for word in ("model.safetensors", "layers.", "load_file"):
            if word in line.get("text", ""):
                line["text_hex"] = line.pop("text").encode().replace(word.encode(), EVIL + word.encode()).hex()
                break
        lines.append(line)
    return pack(lines, name)


class Run:
    """One call of `check` as a step of a job, with all that it leaves behind."""

    def __init__(self, *arguments, github=True):
        names = {"junit": "junit.xml", "benchmark": "benchmark.json", "summary": "summary.md"}
        self.paths = {key: f"{WORK}/{name}" for key, name in names.items()}
        for path in self.paths.values():
            if os.path.exists(path):
                os.unlink(path)
        env = {key: value for key, value in os.environ.items() if not key.startswith("GITHUB_")}
        if github:
            env |= {"GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": REPO, "GITHUB_STEP_SUMMARY": self.paths["summary"]}
        options = ["--junit", self.paths["junit"], "--benchmark", self.paths["benchmark"]]
        done = subprocess.run([ANALYZE, "check", *options, *arguments], env=env, capture_output=True, check=False)
        self.status, self.stdout, self.stderr = done.returncode, done.stdout.decode(), done.stderr.decode()
        self.commands = consumers.commands(self.stdout, self.stderr)

    def summary(self):
        with open(self.paths["summary"], encoding="utf-8") as file:
            return consumers.Summary(file.read())

    def levels(self):
        return [name for name, _, _ in self.commands]


def valid(run):
    """What every run must be, whatever its result: facts for check()."""
    cases, wrong = consumers.junit(run.paths["junit"])
    summary = run.summary()
    schemas = consumers.schemas()
    own = [title for _, properties, _ in run.commands if (title := properties.get("title", "")).startswith("sparktrace: ")]
    return [
        ("JUnit schemas", len(schemas), 2),
        ("JUnit", wrong, []),
        ("JUnit by schema", [] if not cases else [str(e.reason) for s in schemas for e in s.iter_errors(run.paths["junit"])], []),
        ("a case without a body", [key for key, (status, text) in cases.items() if status != "success" and not text], []),
        ("annotations", len(run.commands) <= 5, True),
        ("annotations not ours", len(run.commands) - len(own), 0),
        ("summary", summary.wrong, []),
        ("summary's heading", len(summary.headings), 1),
        ("summary's table", [len(set(map(len, table))) for table in summary.tables], [1] * len(summary.tables)),
        ("red", any(status in ("failure", "error") for status, _ in cases.values()), run.status != 0),
        ("error annotation", "error" in run.levels(), run.status != 0),
    ]


def case(cases, name):
    return cases.get(("sparktrace.load", name), (None, ""))[0]


def cells(run):
    """{metric: row} of the summary's first table."""
    head, *rows = run.summary().tables[0]
    return {row[0]: dict(zip(head, row)) for row in rows}


def over(name, trace, prefix=""):
    """1 GiB of anonymous copies that the baseline has not; the file's name comes through to every reader."""
    grown = f"file {prefix}model.safetensors: 0 bytes -> 1.00 GiB"
    run = Run("--baseline", BASELINE, trace)
    cases, _ = consumers.junit(run.paths["junit"])
    status, text = cases.get(("sparktrace.load", "load_anonymous_copy_peak"), (None, ""))
    annotations = {properties.get("title"): (level, properties, data) for level, properties, data in run.commands}
    level, properties, data = annotations.get("sparktrace: load_anonymous_copy_peak over", (None, {}, ""))
    with open(BASELINE, encoding="utf-8") as file:
        lines = file.read().split("\n")
    numbers = consumers.benchmark(run.paths["benchmark"])
    row = cells(run)["load_anonymous_copy_peak"]
    check(name, *valid(run), ("status", run.status, 1),
          ("JUnit", status, "failure"), ("its body names the file", grown in text, True),
          ("ok", case(cases, "load_device_peak"), "success"),
          ("annotation", level, "error"), ("its file", properties.get("file"), "ci/load, memory.json"),
          ("its line", '"load_anonymous_copy_peak":' in lines[int(properties.get("line", 0)) - 1], True),
          ("annotation names the file", grown in data, True),
          ("row", (row["value"], row["baseline"], row["state"]), ("1.00 GiB", "0 bytes", "over")),
          ("what grew", any(grown in item for item in run.summary().items), True),
          ("benchmark", numbers["load_anonymous_copy_peak"], (GIB, "bytes", None)),
          ("factor", numbers["load_factor"][:2], (2, "ratio")))


def ok(name, trace, *arguments):
    run = Run("--baseline", BASELINE, *arguments, trace)
    check(name, *valid(run), ("status", run.status, 0), ("annotations", run.commands, []),
          ("states", {row["state"] for row in cells(run).values()} <= {"ok", "shown"}, True),
          ("no anonymous copies", consumers.benchmark(run.paths["benchmark"])["load_anonymous_copy_peak"][0], 0))


def improved(trace, better):
    path = REPO + "/larger.json"
    subprocess.run([ANALYZE, "check", "--update", "--baseline", path, trace], check=True, capture_output=True)
    run = Run("--baseline", path, better)
    check("improved", *valid(run), ("status", run.status, 0), ("annotations", set(run.levels()), {"notice"}),
          ("row", cells(run)["load_anonymous_copy_peak"]["state"], "improved"))


def cannot_tell(name, trace):
    """A baseline of a machine with another page size."""
    path = REPO + "/pages.json"
    with open(BASELINE, encoding="utf-8") as file:
        baseline = json.load(file)
    baseline["fingerprint"]["page_size"] = 65536
    with open(path, "w", encoding="utf-8") as file:
        json.dump(baseline, file, indent=2, sort_keys=True)
    run = Run("--baseline", path, trace)
    cases, _ = consumers.junit(run.paths["junit"])
    check(name, *valid(run), ("status", run.status, 3),
          ("JUnit", case(cases, "comparable"), "error"),
          ("the reason is unfolded", os.path.basename(trace) in run.summary().folded.text, True),
          ("the reason is annotated", any("page" in data for _, _, data in run.commands), True))


def limits(trace):
    """A limit and a baseline of one metric are two cases, and so are budget and fit."""
    run = Run("--baseline", BASELINE, "--metric", "load_device_peak=100MB", "--budget", "64GiB", "--fit", "64GiB", trace)
    cases, _ = consumers.junit(run.paths["junit"])
    check("limits", *valid(run), ("status", run.status, 1),
          ("by baseline", case(cases, "load_device_peak"), "success"),
          ("by limit", case(cases, "load_device_peak, limit"), "failure"),
          ("by budget", case(cases, "load_modelled_peak, budget"), "success"),
          ("fit", case(cases, "fit"), "success"))


def several(lean, grown):
    """The largest of the runs counts; how far they are apart is shown, and how far off the point of the chart may be."""
    run = Run("--baseline", BASELINE, lean, grown, lean)
    row = cells(run)["load_anonymous_copy_peak"]
    check("several_runs", *valid(run), ("status", run.status, 1), ("value", row["value"], "1.00 GiB"),
          ("spread", row["spread"], "up to 1.00 GiB"),
          ("steady", cells(run)["load_device_peak"]["spread"], "1.00 GiB"),
          ("benchmark", consumers.benchmark(run.paths["benchmark"])["load_anonymous_copy_peak"], (GIB, "bytes", GIB)))


def update(trace):
    """A pipeline may read its reports also in the run that writes the baseline."""
    run = Run("--update", "--baseline", REPO + "/new.json", trace)
    check("update", *valid(run), ("status", run.status, 0), ("written", os.path.exists(REPO + "/new.json"), True),
          ("annotations", run.commands, []),
          ("benchmark", consumers.benchmark(run.paths["benchmark"])["load_device_peak"][0], GIB))


def elsewhere(trace):
    """Not on GitHub nothing is written that only GitHub understands."""
    run = Run("--baseline", BASELINE, trace, github=False)
    check("elsewhere", ("status", run.status, 1), ("annotations", [c for c in run.commands if "title" in c[1]], []),
          ("summary", os.path.exists(run.paths["summary"]), False))


def as_json(name, trace):
    """With --json standard output is one document, also on GitHub."""
    run = Run("--baseline", BASELINE, "--json", trace)
    check(name, *valid(run), ("status", run.status, 1), ("an object", isinstance(json.loads(run.stdout), dict), True),
          ("commands in it", consumers.commands(run.stdout), []))


def guarded(before, trace):
    """Reports and comparisons are in the same log: names are no commands there, and JSON says the same."""
    calls = [("report", "--tensors", trace), ("report", "--json", trace), ("diff", before, trace),
             ("diff", "--json", before, trace)]
    wrong = []
    for call in calls:
        env = {key: value for key, value in os.environ.items() if not key.startswith("GITHUB_")}
        here = subprocess.run([ANALYZE, *call], env=env, capture_output=True, check=False)
        there = subprocess.run([ANALYZE, *call], env=env | {"GITHUB_ACTIONS": "true"}, capture_output=True, check=False)
        text, log = here.stdout.decode(), there.stdout.decode()
        if consumers.commands(log) or "##[" in log:
            wrong.append(f"{call}: {consumers.commands(log)}")
        if (here.returncode, "--json" in call and json.loads(text)) != (there.returncode, "--json" in call and json.loads(log)):
            wrong.append(f"{call}: not the same")
        if "##[" not in text:
            wrong.append(f"{call}: nothing to guard")
    check("report_and_diff_on_github", ("wrong", wrong, []))


def misspelt(trace):
    """What is neither a command nor a file is not taken for a trace, and no report is made of the others."""
    def call(*words):
        done = subprocess.run([ANALYZE, *words], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, "chekc (commands: report, diff, check, dump, pack)" in done.stderr

    check("misspelt_command", ("said", call("chekc", trace), (2, "", True)), ("alone", call("chekc"), (2, "", True)),
          ("a file", call(trace)[0], 0))


def unwritable(trace):
    runs = [Run("--baseline", BASELINE, option, "/dev/full", trace) for option in ("--junit", "--benchmark")]
    check("unwritable", ("status", [run.status for run in runs], [2, 2]),
          ("said", ["/dev/full" in run.stderr for run in runs], [True, True]))


def main():
    os.makedirs(os.path.dirname(BASELINE))
    lean, grown = scenario("read_only"), scenario("copy_on_write")
    subprocess.run([ANALYZE, "check", "--update", "--baseline", BASELINE, lean], check=True, capture_output=True)
    ok("ok", lean)
    over("over", grown)
    improved(grown, lean)
    cannot_tell("cannot_tell", grown)
    limits(lean)
    several(lean, grown)
    update(lean)
    elsewhere(grown)
    as_json("json_on_github", grown)
    unwritable(lean)
    misspelt(lean)
    bad = evil(grown, "e<b>v|i`l&::error::")
    over("over_hostile_names", bad, PRINTED)
    cannot_tell("cannot_tell_hostile_names", bad)
    guarded(lean, bad)
    as_json("json_on_github_hostile_names", bad)
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
