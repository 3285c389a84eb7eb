// SPDX-License-Identifier: MIT
// A line with a number on a Unix socket is answered by a digest, by way of zlib,
// JSON, regular expressions, exceptions, garbage and, now and then, a child process.
'use strict';
const net = require('net'), zlib = require('zlib'), crypto = require('crypto');
const { execFile } = require('child_process');

function hot(list) {
	let s = 0;
	for (const o of list)
		s += o.value.n;
	return s;
}

function answer(n) {
	const text = `ukprobes ${n}\n`.repeat(n % 50 + 1);
	const list = [];
	for (let i = 0; i < 50; i++)
		list.push({ value: { n: i, pad: new Array(20).fill(i) } });
	let ok = hot(list) === 1225;
	try {
		list.push({});
		hot(list);
		ok = false;
	} catch (e) {
		ok = ok && e instanceof TypeError;
	}
	ok = ok && zlib.inflateSync(zlib.deflateSync(text)).toString() === text;
	ok = ok && JSON.parse(JSON.stringify(list))[7].value.n === 7;
	ok = ok && text.replace(/[0-9]+/g, '#') === 'ukprobes #\n'.repeat(n % 50 + 1);
	if (n % 499 === 0)
		execFile('/bin/true', (e) => { if (e) process.exit(3); });
	return ok ? crypto.createHash('sha256').update(text).digest('hex') + '\n' : 'wrong\n';
}

net.createServer((c) => {
	let rest = '';
	c.on('error', () => {});
	c.on('data', (d) => {
		const lines = (rest + d).split('\n');
		rest = lines.pop();
		for (const line of lines)
			c.write(answer(Number(line)));
	});
}).listen(process.argv[2]);
