"""The demo: the whole path on the lab's engines, every stage observed."""
