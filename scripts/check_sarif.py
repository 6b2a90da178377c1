"""Holds SARIF files against the official schema: `python scripts/check_sarif.py FILE…` (needs jsonschema)."""
import json
import sys
from pathlib import Path

import jsonschema

schema = json.loads((Path(__file__).parent.parent / "tests/sarif/sarif-schema-2.1.0.json").read_text())
validator = jsonschema.Draft7Validator(schema, format_checker=jsonschema.FormatChecker())
failed = False
for name in sys.argv[1:]:
    document = json.loads(Path(name).read_text(encoding="utf-8"))
    problems = [f"{'/'.join(map(str, error.absolute_path))}: {error.message[:200]}" for error in validator.iter_errors(document)]
    failed |= bool(problems)
    results = sum(len(run["results"]) for run in document["runs"])
    print(f"{name}: {results} results, {len(problems)} problems")
    for problem in problems:
        print(f"  {problem}")
sys.exit(failed)
