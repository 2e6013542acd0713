"""Asks for quotas and storage targets: chooses the tool and reads its answer."""
