// Before anything is drawn: the theme that was chosen here, if one was.
try {
  const chosen = localStorage.getItem("um-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch { /* no storage: as the system */ }
