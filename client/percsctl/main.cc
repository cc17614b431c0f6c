#include "client/percsctl/command.h"

int main(int argc, char** argv) { return percs::RunPercsctl(argc, argv); }
