# SPDX-License-Identifier: Apache-2.0
"""One line: what two loads of the same weights took at their peak.  difference.py ANALYZER BEFORE AFTER"""

import json
import subprocess
import sys

GIB = 1 << 30


def load_of(analyzer, trace):
    run = subprocess.run([analyzer, "--json", trace], stdout=subprocess.PIPE, check=False)
    if run.returncode not in (0, 1, 3):
        sys.exit(f"difference.py: {trace} is unreadable")
    return json.loads(run.stdout)["peak"]["load"]


def main():
    analyzer, *traces = sys.argv[1:]
    before, after = (load_of(analyzer, trace) for trace in traces)
    peaks = [load["load_modelled"]["high_bytes"] for load in (before, after)]
    factors = [load["load_factor"] for load in (before, after)]
    print(
        f"The difference: the load's peak went from {peaks[0] / GIB:.2f} GiB (factor {factors[0]:.2f}) "
        f"to {peaks[1] / GIB:.2f} GiB (factor {factors[1]:.2f}): {(peaks[0] - peaks[1]) / GIB:.2f} GiB less for the same weights."
    )


main()
