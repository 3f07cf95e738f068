from __future__ import annotations

import math

from dpone_provider.adapters.system.entropy import ALPHABET, SystemEntropy


def test_a_secret_holds_at_least_256_bits_of_letters_and_digits_with_each_class() -> None:
    for _ in range(200):
        text = SystemEntropy().secret().reveal()
        assert len(text) * math.log2(len(ALPHABET)) >= 256
        assert set(text) <= set(ALPHABET)
        assert any(c.islower() for c in text)
        assert any(c.isupper() for c in text)
        assert any(c.isdigit() for c in text)


def test_nothing_is_given_twice() -> None:
    entropy = SystemEntropy()
    assert len({entropy.uuid() for _ in range(1000)}) == 1000
    assert len({entropy.secret().reveal() for _ in range(1000)}) == 1000
