# SPDX-License-Identifier: Apache-2.0
"""See recipe.sh."""

import json
import os
import re
import shutil
import subprocess
import sys
import time

from simledger import BUILD, FOLDER, MIB, OLD_SAFETENSORS, PYTHON, ROOT, check, finish

README = os.path.join(ROOT, "README.md")
CI = os.path.join(ROOT, "scripts", "ci")
OVERLAY = os.path.join(ROOT, ".venv", "check")
HOME = os.path.join(FOLDER, "home")
WORK = os.path.join(FOLDER, "repository")
PREFIX = os.path.join(HOME, ".local")
# The growth must be above the tolerance of load_anonymous_copy_peak, 64 MiB.
TENSORS, WEIGHTS = 12, 96 * MIB

LOAD = """from safetensors.torch import load_file

tensors = load_file("model.safetensors", device="cuda")
print(len(tensors), sum(tensor.nbytes for tensor in tensors.values()))
"""


def environment(**settings):
    """That of a login: nothing of make or of this test but the build folder, which `make` would make otherwise."""
    ours = re.compile(r"SPARKTRACE|SIMCUDA|LD_|MAKE|MFLAGS|PYTHON|GITHUB_|BUILD$|T$")
    env = {name: value for name, value in os.environ.items() if not ours.match(name)}
    env.update(HOME=HOME, O=BUILD, PATH=os.path.join(FOLDER, "bin") + ":" + env["PATH"])
    env.update(settings)
    return env


def shell(script, folder=WORK, stderr=subprocess.STDOUT, **settings):
    command = ["bash", "-e", "-c", script]
    return subprocess.run(
        command, cwd=folder, env=environment(**settings), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr,
        text=True, check=False,
    )


def installed(script, **settings):
    """As a user who has PREFIX/bin in PATH."""
    return shell(f'PATH="{PREFIX}/bin:$PATH"\n{script}', **settings)


def wrong(done, status, *words):
    """What is not as it should be; each word must be in what was printed."""
    missing = [word for word in words if word not in done.stdout]
    return (done.returncode != status or missing) and (done.returncode, missing, done.stdout[-1000:])


def content(*path):
    """Of a file; nothing where there is none."""
    if not os.path.exists(os.path.join(*path)):
        return ""
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def blocks():
    """Commands by the name of their marker: the indented lines that follow it."""
    found = re.findall(r"^<!-- recipe: (\w+) -->\n\n((?:    .*\n)+)", content(README), re.M)
    return {name: re.sub("^    ", "", text, flags=re.M) for name, text in found}


def growth_said(text):
    """The first line, if it says by how much, of what and from what: all weights, where there were no copies."""
    line = text.splitlines()[0] if text else ""
    wanted = rf"\+{WEIGHTS // MIB}\.0 MiB: .* from 0 .* to {WEIGHTS // MIB}\.0 MiB\b.*\bload_anonymous_copy_peak\b"
    return bool(re.match(wanted, line)) and line


def make_repository():
    """The user's: their program, their model, their Python."""
    for folder in (HOME, WORK, os.path.join(FOLDER, "bin")):
        os.makedirs(folder)
    python = os.path.join(FOLDER, "bin", "python")
    with open(python, "w", encoding="utf-8") as file:
        file.write(f'#!/bin/sh\nexec {PYTHON} "$@"\n')
    sudo = os.path.join(FOLDER, "bin", "sudo")
    with open(sudo, "w", encoding="utf-8") as file:
        file.write('#!/bin/sh\nexec "$@"\n')
    os.chmod(python, 0o755)
    os.chmod(sudo, 0o755)
    with open(os.path.join(WORK, "load.py"), "w", encoding="utf-8") as file:
        file.write(LOAD)
    make = [os.path.join(BUILD, "tests", "tools", "make_safetensors"), "model.safetensors", TENSORS, WEIGHTS // MIB]
    subprocess.run([str(word) for word in make], cwd=WORK, check=True)


# ---- README ---------------------------------------------------------------------------------------------------------


def test_readme():
    recipe = blocks()
    check("readme_has_the_recipe", list(recipe) != ["install", "baseline", "check"] and list(recipe))
    # The first block's PATH is that of the others: each runs after it.
    path = [line for line in recipe["install"].splitlines() if line.startswith("export ")]
    done = shell(recipe["install"], folder=ROOT)
    check("recipe_install", wrong(done, 0))
    start = time.monotonic()
    loaded = f"{TENSORS} {WEIGHTS}"
    run = lambda name, **settings: shell("\n".join(path + [recipe[name]]), **settings)
    check("recipe_baseline", wrong(run("baseline"), 0, loaded))
    check("recipe_no_growth", wrong(run("check"), 0, loaded))
    done = run("check", PYTHONPATH=OLD_SAFETENSORS, stderr=None)
    said = done.stdout.replace(loaded + "\n", "", 1)
    check("recipe_growth_fails", wrong(done, 1, loaded, "load_anonymous_copy_peak"))
    check("recipe_growth_is_one_sentence", not growth_said(said) and ("no such sentence", said[:300]))
    print(f"# {time.monotonic() - start:.1f} s after installation: {growth_said(said)}")


# ---- scripts/ci/check-load.sh -----------------------------------------------------------------------------------------


def test_script():
    script = os.path.join(CI, "check-load.sh")
    run = lambda words, **settings: installed(f'"{script}" {words}', **settings)
    results = os.path.join(WORK, "the results")
    done = run("-b none.json python load.py")
    check("script_no_baseline", wrong(done, 2, "none.json", "--update") or (str(WEIGHTS) in done.stdout and "it ran"))
    done = run("-n 3 -d 'the results' -b 'a baseline.json' -u python load.py")
    check("script_writes_a_baseline", wrong(done, 0) or not os.path.exists(os.path.join(WORK, "a baseline.json")))
    done = run("-d 'the results' -b 'a baseline.json' -- python load.py")
    left = [name for name in ("run-1", "run-2", "run-3") if os.path.exists(f"{results}/{name}/run.zst")]
    check("script_no_growth", wrong(done, 0) or (left != ["run-1"] and left))
    done = run("-d 'the results' -b 'a baseline.json' python load.py", PYTHONPATH=OLD_SAFETENSORS)
    check("script_growth", wrong(done, 1, "load_anonymous_copy_peak"))
    check("script_growth_in_junit", "<failure" not in content(results, "junit.xml"))
    names = [entry["name"] for entry in json.loads(content(results, "benchmark.json") or "[]")]
    check("script_benchmark", not any("load_modelled_peak" in name for name in names) and ("not there", names))
    check("script_limit", wrong(run("--budget 50MiB --metric load_device_peak=90MiB python load.py"), 1, "load_device_peak"))
    test_script_failures(run)
    test_script_limits_alone(script)
    test_script_names(run)


def github_commands(text):
    """Of a log, what GitHub's runner would take for commands (ActionCommand.cs): none while it was told to stop."""
    token, found = None, []
    for line in text.splitlines():
        command = re.match(r"\s*::([^ :]+)[^:]*::(.*)", line) or re.search(r"##\[([^ \]]+)[^\]]*\](.*)", line)
        if command and token is None and command[1] == "stop-commands":
            token = command[2]
        elif command and command[1] == token:
            token = None
        elif command and token is None:
            found.append(line)
    return found


def test_script_limits_alone(script):
    """In a folder without a baseline."""
    run = lambda words: installed(f'mkdir -p alone && cd alone && ln -sf ../load.py ../model.safetensors . && "{script}" {words}')
    check("script_limits_need_no_baseline", wrong(run("--budget 1GiB python load.py"), 0, "--budget 1GiB"))
    check("script_limit_alone_is_broken", wrong(run("--budget 50MiB python load.py"), 1, "--budget 50MiB"))
    done = run("-b none.json --budget 1GiB python load.py")
    check("script_named_baseline_must_be_there", wrong(done, 2, "none.json"))


def test_script_names(run):
    """Of a file, in the report of a run that failed: no command for GitHub's runner."""
    name = "##[error]a ::error::b.safetensors"
    os.link(os.path.join(WORK, "model.safetensors"), os.path.join(WORK, name))
    with open(os.path.join(WORK, "names.py"), "w", encoding="utf-8") as file:
        file.write(LOAD.replace("model.safetensors", name) + "print('no newline', end='')\nraise SystemExit(7)\n")
    done = run("python names.py", GITHUB_ACTIONS="true")
    check("script_failure_shows_names", wrong(done, 7, r"\x23#[error]a"))
    check("script_failure_names_no_commands", github_commands(done.stdout))
    os.unlink(os.path.join(WORK, name))


def test_script_failures(run):
    weights = "python -c 'from safetensors.torch import load_file as l; l(\"model.safetensors\"); raise SystemExit(7)'"
    check("script_command_fails", wrong(run(weights), 7, "failed with status 7", "did to the pool"))
    check("script_command_is_killed", wrong(run("sh -c 'kill -9 $$'"), 137, "failed with status 137"))
    check("script_command_loads_nothing", wrong(run("true"), 3, "left no trace"))
    done = run("--real sh -c 'echo $LD_PRELOAD $LD_LIBRARY_PATH.'")
    check("script_real", wrong(done, 3, f"{PREFIX}/lib/libsparktrace.so .\n"))
    check("script_no_command", wrong(run("-n 2"), 2, "no command"))
    check("script_wrong_number", wrong(run("-n some python load.py"), 2, "'some'"))
    check("script_unknown_option", wrong(run("--baselime x python load.py"), 2, "--baselime"))
    done = shell(f'"{CI}/check-load.sh" true')
    check("script_without_tools", wrong(done, 2, "sparktrace-analyze is not in PATH"))


# ---- scripts/ci/*.yml -------------------------------------------------------------------------------------------------


def schema_errors(document, name):
    import jsonschema

    schema = json.loads(content(OVERLAY, "check_jsonschema", "builtin_schemas", "vendor", f"{name}.json"))
    validator = jsonschema.validators.validator_for(schema)(schema)
    return [f"{list(error.path)}: {error.message}"[:200] for error in validator.iter_errors(document)]


def read_yaml(name):
    import yaml

    class Loader(yaml.SafeLoader):
        """As GitHub and GitLab read it: `on` is a word."""

    Loader.yaml_implicit_resolvers = {
        first: [(tag, regexp) for tag, regexp in pairs if tag != "tag:yaml.org,2002:bool"]
        for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("true|false"), list("tf"))
    return yaml.load(content(CI, name), Loader)


class Runner:
    """As much of GitHub's runner as steps with `run` need: a workspace, files that later steps read."""

    def __init__(self):
        self.workspace = os.path.join(FOLDER, "workspace")
        shutil.copytree(WORK, self.workspace, ignore=shutil.ignore_patterns("*.zst", "*.json", "the results"))
        os.symlink(ROOT, os.path.join(self.workspace, "sparktrace"))
        self.home = os.path.join(FOLDER, "runner")
        os.makedirs(self.home)
        for name in ("path", "summary"):
            open(self.file(name), "w", encoding="utf-8").close()

    def file(self, name):
        return os.path.join(self.home, name)

    def step(self, script, **settings):
        path = "".join(f'PATH="{line}:$PATH"\n' for line in content(self.file("path")).splitlines())
        own = {"HOME": self.home, "CI": "true", "GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": self.workspace}
        files = {"GITHUB_PATH": self.file("path"), "GITHUB_STEP_SUMMARY": self.file("summary")}
        return shell(f"set -o pipefail\n{path}{script}", folder=self.workspace, **own, **files, **settings)


def satisfied(script):
    """Nothing is to be installed that is not there in this version: pip does nothing, then."""
    there = content(ROOT, ".venv", ".packages").split()
    wanted = [word for word in script.replace("\\\n", " ").split() if not word.startswith("-")][4:]
    names = {package.split("==")[0] for package in there}
    return [word for word in wanted if word not in there and word not in names]


def test_workflow():
    workflow = read_yaml("memory.yml")
    check("workflow_schema", schema_errors(workflow, "github-workflows"))
    steps = workflow["jobs"]["load"]["steps"]
    install, packages, compare, update = [step["run"] for step in steps if "run" in step]
    version = re.search(r"^VERSION := (.*)$", content(ROOT, "Makefile"), re.M)[1]
    refs = [step["with"]["ref"] for step in steps if "ref" in step.get("with", {})]
    check("workflow_version", refs != ["v" + version] and refs)
    runner = Runner()
    check("workflow_install", wrong(runner.step(install), 0))
    missing = satisfied(packages)
    check("workflow_packages", missing or wrong(runner.step(packages, PIP_NO_INDEX="1"), 0))
    check("workflow_update", wrong(runner.step(update), 0))
    check("workflow_no_growth", wrong(runner.step(compare), 0))
    before = len(content(runner.file("summary")))
    done = runner.step(compare, PYTHONPATH=OLD_SAFETENSORS)
    annotations = [line for line in done.stdout.splitlines() if line.startswith("::error")]
    check("workflow_growth", wrong(done, 1) or not any("load_anonymous_copy_peak" in line for line in annotations))
    check("workflow_summary", "load_anonymous_copy_peak" not in content(runner.file("summary"))[before:])
    kept = [step["with"]["path"].split() for step in steps if "upload-artifact" in step.get("uses", "")]
    gone = [path for path in sum(kept, []) if not os.path.exists(os.path.join(runner.workspace, path))]
    check("workflow_keeps_what_there_is", len(kept) != 1 or gone)
    return compare, packages


def test_gitlab(compare, packages):
    document = read_yaml("gitlab-ci.yml")
    check("gitlab_schema", schema_errors(document, "gitlab-ci"))
    job = document["load-memory"]
    check("gitlab_same_command", job["script"] != [compare] and job["script"])
    same = packages.replace("\\\n", " ").split()
    check("gitlab_same_packages", job["before_script"][-1].split() != same and job["before_script"][-1])


# ---- sparktrace-sim ---------------------------------------------------------------------------------------------------


def test_wrapper():
    run = lambda words, **settings: installed(f"sparktrace-sim {words}", **settings)
    check("wrapper_status", wrong(run("--no-record sh -c 'exit 7'"), 7))
    check("wrapper_signal", wrong(run("--no-record sh -c 'kill -TERM $$' || exit $?"), 143))
    check("wrapper_no_such_command", wrong(run("nothing-like-this"), 127, "no command nothing-like-this"))
    check("wrapper_no_command", wrong(run(""), 125, "no command"))
    check("wrapper_wrong_size", wrong(run("--card 24XB true"), 125, "24GiB"))
    check("wrapper_unknown_option", wrong(run("--carb 24GiB true"), 125, "--carb"))
    done = run("--no-record sh -c 'echo $LD_LIBRARY_PATH $SIMCUDA_GB10 $LD_PRELOAD'", LD_LIBRARY_PATH="/theirs")
    check("wrapper_environment", wrong(done, 0, f"{PREFIX}/lib/sparktrace-sim:/theirs 1 ") or "libsparktrace" in done.stdout)
    device = "python -c 'import torch; print(torch.cuda.get_device_name(), torch.cuda.mem_get_info()[1])'"
    half = run(f"--no-record --card 1.5GiB {device}")
    check("wrapper_size_with_a_fraction", wrong(half, 0, "simulated device 1610612736"))
    check("wrapper_card", wrong(run(f"--no-record --card 2GiB {device}"), 0, "simulated device 2147483648"))
    moved = os.path.join(FOLDER, "moved")
    shutil.move(PREFIX, moved)
    done = shell(f'"{moved}/bin/sparktrace-sim" -o "{FOLDER}/moved.zst" python load.py')
    check("wrapper_moved", wrong(done, 0) or not os.path.exists(f"{FOLDER}/moved.zst"))
    os.remove(os.path.join(moved, "lib", "sparktrace-sim", "libcudart.so.13"))
    check("wrapper_without_its_libraries", wrong(shell(f'"{moved}/bin/sparktrace-sim" true'), 125, "make install-sim"))


def test_nvidia_wheels():
    """NVIDIA's runtime where its wheel has it: PyTorch's RPATH finds it before LD_LIBRARY_PATH, and it wants a real driver."""
    site = os.path.join(FOLDER, "site")
    packages = os.path.join(os.path.dirname(OLD_SAFETENSORS), "lib", "python3.*", "site-packages", "torch")
    runtime = os.path.join(os.path.dirname(OLD_SAFETENSORS), "nvidia-runtime", "nvidia")
    os.makedirs(site)
    done = shell(f"cp -al {packages} '{site}' && cp -a '{runtime}' '{site}'", folder=FOLDER)
    check("wheels_laid_out", wrong(done, 0))
    done = shell("python load.py", PYTHONPATH=site, LD_LIBRARY_PATH=f"{PREFIX}/lib/sparktrace-sim", SIMCUDA_GB10="1")
    check("wheels_refuse_a_simulated_driver", wrong(done, 1, "cudaGetDeviceCount"))
    done = installed("sparktrace-sim -o wheels.zst python load.py", PYTHONPATH=site)
    check("wheels_with_the_wrapper", wrong(done, 0, f"{TENSORS} {WEIGHTS}"))


def main():
    if not os.path.exists(PYTHON):
        print("skip recipe - there is no .venv; scripts/python-env makes it")
        return
    sys.path.insert(0, OVERLAY)
    make_repository()
    test_readme()
    test_script()
    test_gitlab(*test_workflow())
    test_nvidia_wheels()
    test_wrapper()
    finish()


main()
