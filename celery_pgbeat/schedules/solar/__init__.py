"""Solar events: `solar: sunset 52.52 13.40`."""
