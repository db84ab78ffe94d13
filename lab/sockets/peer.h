#pragma once
// Serves subjects at control_path until it is killed; returns only when it cannot.
int be_peer(void);
