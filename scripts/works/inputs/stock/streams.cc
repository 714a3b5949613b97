// SPDX-License-Identifier: Apache-2.0
// Work for the C++ library's own code: "read" parses what it wrote into memory, keeps it in trees
// and prints sums; "write" formats numbers in bases and widths, edits strings, throws and catches.
#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>

static unsigned x = 4711;

static unsigned next()
{
	return x = x * 69069 + 12345;
}

static unsigned long read_back(int rounds)
{
	std::map<std::string, long> sums;
	std::ostringstream text;
	unsigned long total = 0;

	for (int i = 0; i < 2000; i++)
		text << next() % 100000 << " word" << next() % 977 << ' ' << next() / 1e5 << '\n';
	for (int r = 0; r < rounds; r++) {
		std::istringstream in(text.str());
		std::string word, line;
		double weight;
		long n;

		while (in >> n >> word >> weight)
			sums[word] += n + static_cast<long>(weight);
		std::ostringstream summary;
		for (const auto &s : sums)
			summary << s.first << '=' << s.second << " (" << static_cast<double>(s.second) / 3 << ")\n";
		total += summary.str().size();
		std::istringstream lines(text.str());
		while (std::getline(lines, line))
			total += line.find("word9") != std::string::npos ? line.size() : 1;
	}
	for (const auto &s : sums)
		total += s.first.size() * static_cast<unsigned long>(s.second % 1009);
	return total;
}

static unsigned long write_out(int rounds)
{
	std::multiset<std::string> kept;
	unsigned long total = 0;

	for (int r = 0; r < rounds; r++) {
		std::ostringstream out;

		for (int i = 0; i < 300; i++) {
			unsigned n = next();

			out << std::setw(9) << std::setfill('.') << std::hex << n << std::showbase << std::oct
			    << n % 512 << std::dec << std::noshowbase << ' ' << std::left << std::setw(12)
			    << std::scientific << std::setprecision(i % 9) << n / 7.0 << std::boolalpha
			    << (n % 2 == 0) << '\n';
			try {
				std::string s(i % 20, 'a');

				s.insert(s.size() / 2, std::to_string(n)).append(s, 1, 4);
				kept.insert(s);
				if (s.at(n % 40) == 'a')
					total++;
			} catch (const std::out_of_range &e) {
				total += static_cast<unsigned char>(e.what()[0]);
			}
		}
		for (char c : out.str())
			total = total * 31 + static_cast<unsigned char>(c);
		if (kept.size() > 3000)
			kept.clear();
	}
	return total + kept.size();
}

int main(int argc, char **argv)
{
	int rounds = argc > 2 ? std::atoi(argv[2]) : 10;

	if (argc < 2)
		return 2;
	std::cout << (argv[1] == std::string("read") ? read_back(rounds) : write_out(rounds)) << std::endl;
	return 0;
}
