// The program that owns the precompiled headers of the RPC tests (CMakeLists.txt); it does nothing.
int main() { return 0; }
