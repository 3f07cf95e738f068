"""The process that moves one attempt's rows, with nothing but the credentials it is handed."""
