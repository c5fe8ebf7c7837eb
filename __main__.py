"""`python -m ringfence`: the command line."""

from ringfence.jobs.cli.app import main

if __name__ == "__main__":
    main()
