"""The checks of the project and the scheduler that runs them; see tools/run_tests.py."""
