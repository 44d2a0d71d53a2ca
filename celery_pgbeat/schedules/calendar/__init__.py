"""Calendar events of systemd: `Mon..Fri *-*-* 09:00`."""
