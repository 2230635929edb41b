"""From installed distributions to a frozen registry: discover, check, adapt, freeze, compare."""
