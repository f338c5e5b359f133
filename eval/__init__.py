"""Scoring, statistics, reports."""
