// SPDX-License-Identifier: MIT
// A line with a number on a Unix socket is answered by a digest.  Each answer also
// goes through what a JVM does by signals and by its own stack walks: null checks
// without a test, a division by zero, a stack that overflows, garbage, a fill of
// zlib's; one that comes out wrong makes the answer wrong.
import java.io.BufferedReader;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.zip.Deflater;
import java.util.zip.Inflater;

public class Server {
	static class Box {
		int value;
		Box next;

		Box(int value, Box next) {
			this.value = value;
			this.next = next;
		}
	}

	static int sum(Box b, int n) {
		int s = 0;
		for (int i = 0; i < n; i++) {
			s += b.value;
			b = b.next;
		}
		return s;
	}

	static int deep(int n) {
		return n == 0 ? 0 : 1 + deep(n + 1);
	}

	static int nulls(int n) {
		Box b = null;
		for (int i = 0; i < n; i++)
			b = new Box(i, b);
		int ok = sum(b, n) == n * (n - 1) / 2 ? 1 : 0;
		try {
			sum(b, n + 1);
		} catch (NullPointerException e) {
			ok |= 2;
		}
		try {
			ok += 100 / (n - n);
		} catch (ArithmeticException e) {
			ok |= 4;
		}
		return ok;
	}

	static boolean overflows() {
		try {
			return deep(1) < 0;
		} catch (StackOverflowError e) {
			return true;
		}
	}

	static byte[] packed(byte[] in) throws Exception {
		byte[] mid = new byte[in.length + 64], out = new byte[in.length];
		Deflater d = new Deflater(1);
		d.setInput(in);
		d.finish();
		int n = d.deflate(mid);
		d.end();
		Inflater i = new Inflater();
		i.setInput(mid, 0, n);
		i.inflate(out);
		i.end();
		return out;
	}

	static String answer(int n) throws Exception {
		byte[] text = ("ukprobes " + n + "\n").repeat(n % 50 + 1).getBytes(StandardCharsets.US_ASCII);
		int[][] garbage = new int[20][];
		for (int i = 0; i < garbage.length; i++)
			garbage[i] = new int[500 + i];
		if (nulls(n % 100 + 1) != 7 || garbage[19].length != 519 || !Arrays.equals(packed(text), text)
			|| (n % 97 == 0 && !overflows()))
			return "wrong\n";
		StringBuilder s = new StringBuilder();
		for (byte b : MessageDigest.getInstance("SHA-256").digest(text))
			s.append(String.format("%02x", b));
		return s.append('\n').toString();
	}

	static void serve(SocketChannel c) {
		try (BufferedReader in = new BufferedReader(Channels.newReader(c, "US-ASCII"))) {
			for (String line; (line = in.readLine()) != null;) {
				ByteBuffer out = ByteBuffer.wrap(answer(Integer.parseInt(line)).getBytes());
				while (out.hasRemaining())
					c.write(out);
			}
		} catch (Exception e) {
			e.printStackTrace();
		}
	}

	public static void main(String[] args) throws Exception {
		ServerSocketChannel s = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
		s.bind(UnixDomainSocketAddress.of(args[0]));
		for (;;) {
			SocketChannel c = s.accept();
			new Thread(() -> serve(c)).start();
		}
	}
}
