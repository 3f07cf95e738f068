"""Everything that speaks to something outside this program; one folder per outside thing, drivers only here."""
